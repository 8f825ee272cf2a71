/** Connection to the server: notices that it is away, and when it is back. */

/** Milliseconds between checks while the server answers. */
const CALM = 2000;
/** Milliseconds until the first check after a failure, and at most between two. */
const SOON = 250;
const LATEST = 1000;

export class Connection {
  private failures = 0;
  private waiting: ReturnType<typeof setTimeout> | undefined;

  /** `lost` is called when the server does not answer, `back` when it does again. */
  constructor(
    private readonly lost: () => void,
    private readonly back: () => void,
  ) {}

  /** Check from now on whether the server answers. */
  watch(): void {
    clearTimeout(this.waiting);
    const wait = this.failures === 0 ? CALM : Math.min(SOON * 2 ** (this.failures - 1), LATEST);
    this.waiting = setTimeout(() => void this.check(), wait);
  }

  /** Report a request without an answer. */
  failed(): void {
    this.failures += 1;
    this.lost();
    this.watch();
  }

  /** Report a request that was answered. */
  answered(): void {
    this.failures = 0;
  }

  private async check(): Promise<void> {
    if (document.hidden && this.failures === 0) {
      this.watch();
      return;
    }
    const alive = await fetch("/assets/favicon.svg", { cache: "no-store" }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (!alive) {
      this.failed();
      return;
    }
    if (this.failures > 0) this.back();
    this.watch();
  }
}
