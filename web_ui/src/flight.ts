/** Moving as long as a key is held: W and S zoom, A and D pan, faster the longer they are held. */

export interface Course {
  /** Zoom by a factor. */
  zoom(factor: number): void;
  /** Move by a share of what shows; positive is later. */
  pan(share: number): void;
}

type Way = "in" | "out" | "earlier" | "later";

const KEYS: Record<string, Way> = { w: "in", s: "out", a: "earlier", d: "later" };
const CODES: Record<string, Way> = { KeyW: "in", KeyS: "out", KeyA: "earlier", KeyD: "later" };

/** A tap moves this far. */
const TAP = { pan: 0.08, zoom: 1.2 } as const;
/** Shares of what shows, and doublings, in a second: at first, and after `RAMP` seconds. */
const PAN = [0.5, 2] as const;
const ZOOM = [1.5, 5] as const;
const RAMP = 1.2;
/** Before this many seconds a held key has done no more than a tap. */
const DELAY = 0.12;
/** A picture that comes late moves no further than this many seconds' worth. */
const LONGEST = 0.05;

export class Flight {
  private readonly held = new Map<Way, number>();
  private before = 0;
  private waiting = 0;

  constructor(
    private readonly course: Course,
    private readonly still = window.matchMedia("(prefers-reduced-motion: reduce)"),
  ) {}

  /** Begin to move, or go on; false for a key that moves nothing. */
  press(event: Pick<KeyboardEvent, "key" | "code">): boolean {
    const way = wayOf(event);
    if (way === undefined) return false;
    if (this.held.has(way) && !this.still.matches) return true;
    this.tap(way);
    if (this.still.matches) return true; // the keyboard's own repeat moves on, step by step
    if (this.held.size === 0) this.listen(true);
    this.held.set(way, performance.now());
    if (this.waiting === 0) this.ask();
    return true;
  }

  stop = (): void => {
    cancelAnimationFrame(this.waiting);
    this.waiting = 0;
    this.held.clear();
    this.listen(false);
  };

  private readonly released = (event: KeyboardEvent): void => {
    const way = wayOf(event);
    if (way !== undefined) this.held.delete(way);
    if (this.held.size === 0) this.stop();
  };

  /** Keys come up wherever the focus is by then, and never where the window lost it. */
  private listen(on: boolean): void {
    const change = on ? window.addEventListener : window.removeEventListener;
    change("keyup", this.released as EventListener, true);
    change("blur", this.stop);
  }

  private ask(): void {
    this.before = performance.now();
    this.waiting = requestAnimationFrame((now) => this.go(now));
  }

  private go(now: number): void {
    const passed = Math.min(Math.max(now - this.before, 0) / 1000, LONGEST);
    this.before = now;
    for (const [way, since] of this.held) this.move(way, passed, (now - since) / 1000);
    this.waiting = this.held.size > 0 ? requestAnimationFrame((next) => this.go(next)) : 0;
  }

  private move(way: Way, passed: number, held: number): void {
    if (held < DELAY) return;
    const ramp = Math.min(held / RAMP, 1);
    const speed = ([slow, fast]: readonly [number, number]) => slow + ramp * (fast - slow);
    if (way === "in" || way === "out") this.course.zoom(2 ** ((way === "in" ? 1 : -1) * passed * speed(ZOOM)));
    else this.course.pan((way === "later" ? 1 : -1) * passed * speed(PAN));
  }

  private tap(way: Way): void {
    if (way === "in" || way === "out") this.course.zoom(way === "in" ? TAP.zoom : 1 / TAP.zoom);
    else this.course.pan(way === "later" ? TAP.pan : -TAP.pan);
  }
}

/** By the letter, or by its place on keyboards of other scripts. */
function wayOf({ key, code }: Pick<KeyboardEvent, "key" | "code">): Way | undefined {
  return KEYS[key.toLowerCase()] ?? (key > "\u007f" ? CODES[code] : undefined);
}
