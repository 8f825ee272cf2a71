/** Long press: a resting finger shows the op under it until it is lifted, also while it slides. */

import type { Point } from "./grabs.js";

const LONG_MS = 450;
const STILL = 8;

export interface PressHandlers {
  /** Called when a finger touches the element. */
  began(): void;
  /** Called with each point that a long press explores. */
  pointed(point: Point): void;
}

export class LongPress {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private from: Point = { x: 0, y: 0 };
  private swallow = false;
  private exploring = false;

  constructor(
    private readonly element: HTMLElement,
    private readonly handlers: PressHandlers,
  ) {
    element.addEventListener("pointerdown", (event) => this.down(event));
    element.addEventListener("pointermove", (event) => this.move(event));
    for (const type of ["pointerup", "pointercancel"]) element.addEventListener(type, () => this.end());
    element.addEventListener("touchmove", (event) => this.keep(event), { capture: true, passive: false });
    element.addEventListener("contextmenu", (event) => this.exploring && event.preventDefault());
    element.addEventListener("click", (event) => this.swallow && event.stopImmediatePropagation(), { capture: true });
  }

  /** Whether a finger explores, or has just done so: it then causes neither a click nor a double click. */
  get active(): boolean {
    return this.exploring || this.swallow;
  }

  private down(event: PointerEvent): void {
    this.end();
    this.swallow = false;
    if (event.pointerType !== "touch") return;
    this.handlers.began();
    if (!event.isPrimary) return;
    this.from = this.pointOf(event);
    this.timer = setTimeout(() => this.explore(), LONG_MS);
  }

  private explore(): void {
    this.exploring = true;
    this.swallow = true;
    this.handlers.pointed(this.from);
  }

  private move(event: PointerEvent): void {
    const point = this.pointOf(event);
    if (this.exploring) this.handlers.pointed(point);
    else if (Math.hypot(point.x - this.from.x, point.y - this.from.y) > STILL) clearTimeout(this.timer);
  }

  private end(): void {
    clearTimeout(this.timer);
    this.exploring = false;
  }

  /** Hide the touches of a long press from panning. */
  private keep(event: TouchEvent): void {
    if (!this.exploring) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  private pointOf(event: PointerEvent): Point {
    const { left, top } = this.element.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }
}
