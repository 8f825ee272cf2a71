/** Drags over the picture other than panning: they take precedence and capture the pointer until it is released. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Drag {
  move(point: Point): void;
  drop(): void;
  cancel(): void;
}

/** Maximum movement of a click in pixels. */
const CLICK = 4;

export class Grabs {
  private drag: Drag | null = null;
  private begun = false;
  private from: Point = { x: 0, y: 0 };
  private swallow = false;

  /** `take` returns the drag that begins at a point, or null for panning. */
  constructor(
    private readonly element: HTMLElement,
    private readonly take: (event: PointerEvent, point: Point) => Drag | null,
  ) {
    element.addEventListener("pointerdown", (event) => this.down(event));
    element.addEventListener("pointermove", (event) => this.move(event));
    element.addEventListener("pointerup", () => this.up());
    element.addEventListener("pointercancel", () => this.cancel());
    element.addEventListener("click", (event) => this.click(event), { capture: true });
  }

  /** Return whether a pointer is down that panning must ignore. */
  get active(): boolean {
    return this.drag !== null;
  }

  /** Return whether something is being dragged. */
  get dragging(): boolean {
    return this.drag !== null && this.begun;
  }

  cancel(): void {
    const { drag, begun } = this;
    this.drag = null;
    if (begun) {
      this.swallow = true;
      drag?.cancel();
    }
  }

  private down(event: PointerEvent): void {
    this.swallow = false;
    if (!event.isPrimary) {
      this.cancel();
      return;
    }
    if (event.button !== 0) return;
    this.from = this.pointOf(event);
    this.begun = false;
    this.drag = this.take(event, this.from);
  }

  private move(event: PointerEvent): void {
    if (this.drag === null || !event.isPrimary) return;
    const point = this.pointOf(event);
    if (!this.begun && Math.hypot(point.x - this.from.x, point.y - this.from.y) < CLICK) return;
    if (!this.begun) this.element.setPointerCapture(event.pointerId);
    this.begun = true;
    this.drag.move(point);
  }

  private up(): void {
    const { drag, begun } = this;
    this.drag = null;
    this.swallow = begun && drag !== null;
    if (begun) drag?.drop();
  }

  /** Ignore the click event at the end of a drag. */
  private click(event: MouseEvent): void {
    if (this.swallow) event.stopImmediatePropagation();
    this.swallow = false;
  }

  private pointOf(event: PointerEvent): Point {
    const { left, top } = this.element.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }
}

/** A drag that scrolls if its first movement is vertical, and otherwise acts as another drag. */
export class Either implements Drag {
  private scrolls: boolean | null = null;
  private y: number;

  constructor(
    private readonly from: Point,
    private readonly sideways: Drag | null,
    private readonly scroll: ((by: number) => void) | null,
  ) {
    this.y = from.y;
  }

  move(point: Point): void {
    const steep = Math.abs(point.y - this.from.y) > Math.abs(point.x - this.from.x);
    this.scrolls ??= this.scroll !== null && steep;
    if (this.scrolls) this.scroll?.(this.y - point.y);
    else this.sideways?.move(point);
    this.y = point.y;
  }

  drop(): void {
    if (this.scrolls === false) this.sideways?.drop();
  }

  cancel(): void {
    if (this.scrolls === false) this.sideways?.cancel();
  }
}
