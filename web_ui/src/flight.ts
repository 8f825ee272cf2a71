/** Movement while a key is pressed: W and S zoom, A and D pan, faster the longer they are pressed. */

export interface Course {
  /** Zoom by a factor. */
  zoom(factor: number): void;
  /** Pan by a share of the visible range; positive is later. */
  pan(share: number): void;
}

type Way = "in" | "out" | "earlier" | "later";

const KEYS: Record<string, Way> = { w: "in", s: "out", a: "earlier", d: "later" };
const CODES: Record<string, Way> = { KeyW: "in", KeyS: "out", KeyA: "earlier", KeyD: "later" };

/** Distance of a short key press. */
const TAP = { pan: 0.08, zoom: 1.2 } as const;
/** Speed in shares of the visible range and in doublings per second: at first, and after `RAMP` seconds. */
const PAN = [0.5, 2] as const;
const ZOOM = [1.5, 5] as const;
const RAMP = 1.2;
/** Seconds after which a pressed key moves further than a short key press. */
const DELAY = 0.12;
/** Maximum time step of a frame in seconds, which limits the jump after a late frame. */
const LONGEST = 0.05;

export class Flight {
  private readonly pressed = new Map<Way, number>();
  private before = 0;
  private waiting = 0;

  constructor(
    private readonly course: Course,
    private readonly still = window.matchMedia("(prefers-reduced-motion: reduce)"),
  ) {}

  /** Start or continue a movement; return false for a key without one. */
  press(event: Pick<KeyboardEvent, "key" | "code">): boolean {
    const way = wayOf(event);
    if (way === undefined) return false;
    if (this.pressed.has(way) && !this.still.matches) return true;
    this.tap(way);
    if (this.still.matches) return true; // the keyboard's own repeat continues the movement step by step
    if (this.pressed.size === 0) this.listen(true);
    this.pressed.set(way, performance.now());
    if (this.waiting === 0) this.begin();
    return true;
  }

  stop = (): void => {
    cancelAnimationFrame(this.waiting);
    this.waiting = 0;
    this.pressed.clear();
    this.listen(false);
  };

  private readonly released = (event: KeyboardEvent): void => {
    const way = wayOf(event);
    if (way !== undefined) this.pressed.delete(way);
    if (this.pressed.size === 0) this.stop();
  };

  /** Listen on the window: a key may be released with the focus elsewhere, or never if the window loses the focus. */
  private listen(on: boolean): void {
    const change = on ? window.addEventListener : window.removeEventListener;
    change("keyup", this.released as EventListener, true);
    change("blur", this.stop);
  }

  private begin(): void {
    this.before = performance.now();
    this.waiting = requestAnimationFrame((now) => this.go(now));
  }

  private go(now: number): void {
    const passed = Math.min(Math.max(now - this.before, 0) / 1000, LONGEST);
    this.before = now;
    for (const [way, since] of this.pressed) this.move(way, passed, (now - since) / 1000);
    this.waiting = this.pressed.size > 0 ? requestAnimationFrame((next) => this.go(next)) : 0;
  }

  private move(way: Way, passed: number, duration: number): void {
    if (duration < DELAY) return;
    const ramp = Math.min(duration / RAMP, 1);
    const speed = ([slow, fast]: readonly [number, number]) => slow + ramp * (fast - slow);
    if (way === "in" || way === "out") this.course.zoom(2 ** ((way === "in" ? 1 : -1) * passed * speed(ZOOM)));
    else this.course.pan((way === "later" ? 1 : -1) * passed * speed(PAN));
  }

  private tap(way: Way): void {
    if (way === "in" || way === "out") this.course.zoom(way === "in" ? TAP.zoom : 1 / TAP.zoom);
    else this.course.pan(way === "later" ? TAP.pan : -TAP.pan);
  }
}

/** Return the movement of a key by its letter, or by its position on keyboards of other scripts. */
function wayOf({ key, code }: Pick<KeyboardEvent, "key" | "code">): Way | undefined {
  return KEYS[key.toLowerCase()] ?? (key > "\u007f" ? CODES[code] : undefined);
}
