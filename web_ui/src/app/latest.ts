/** Runs a task for the latest of several requests, which may arrive faster than the task ends. */
export class Latest {
  private running = false;
  private again = false;

  /** `task` must not reject. */
  constructor(private readonly task: () => Promise<void>) {}

  /** Run the task now, or again after the running one: one at a time, and always once after the last request. */
  async request(): Promise<void> {
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
