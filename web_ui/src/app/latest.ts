/** Keeps up with something that changes faster than the task that follows it. */
export class Latest {
  private running = false;
  private again = false;

  /** `task` must not fail. */
  constructor(private readonly task: () => Promise<void>) {}

  /** Run the task now, or once more after the running one: never two at a time, and always once after the last request. */
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
