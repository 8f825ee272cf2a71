/** Keeps up with something that changes faster than it can be followed. */
export class Latest {
  private running = false;
  private again = false;

  /** `task` must not fail. */
  constructor(private readonly task: () => Promise<void>) {}

  /** Run the task now, or once more when the one that runs is done: never two at a time, and never one too few. */
  async ask(): Promise<void> {
    this.again = true;
    if (this.running) return;
    this.running = true;
    while (this.again) {
      this.again = false;
      await this.task();
    }
    this.running = false;
  }
}
