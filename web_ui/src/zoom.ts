/** Zoom and pan in time by drag, double click, wheel and touch: d3-zoom's transform, limited to the timeline's two ends. */

import { type ScaleLinear, scaleLinear } from "d3-scale";
import { type Selection, select } from "d3-selection";
import { type D3ZoomEvent, type ZoomTransform, zoom, zoomIdentity, zoomTransform } from "d3-zoom";
import type { Wheel } from "./remembered.js";
import { turnOf } from "./wheel.js";

export interface ZoomHandlers {
  /** Called after the visible range of time changes. */
  moved(): void;
  /** Scroll the content up by a number of pixels; return false if it cannot scroll. */
  scrolled(by: number): boolean;
  /** Change the height of lanes by a factor. */
  stretched(by: number): void;
  /** Return whether the pointer does something else. */
  busy(): boolean;
  /** Called after a turn of the wheel that could not scroll. */
  idled(): void;
}

export class TimeZoom {
  private readonly behaviour = zoom<HTMLElement, unknown>();
  private readonly selection: Selection<HTMLElement, unknown, null, undefined>;
  private readonly base = scaleLinear([0, 1], [0, 1]);
  /** Action of wheel events. */
  wheel: Wheel = "scroll";
  private lastY = 0;
  private silent = false;

  constructor(
    private readonly element: HTMLElement,
    private readonly handlers: ZoomHandlers,
  ) {
    this.selection = select<HTMLElement, unknown>(element);
    this.behaviour
      .filter((event: MouseEvent) => this.zooms(event))
      .constrain((transform) => this.constrained(transform))
      .clickDistance(4)
      .on("zoom", (event: D3ZoomEvent<HTMLElement, unknown>) => this.zoomed(event));
    this.selection.call(this.behaviour);
    element.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
  }

  /** Current scale from times to pixels. */
  get x(): ScaleLinear<number, number> {
    return zoomTransform(this.element).rescaleX(this.base);
  }

  get all(): boolean {
    return zoomTransform(this.element).k <= 1;
  }

  /** Show the times from 0 to `last` between two pixels; at most, `shortest` fills half of it. */
  fit(left: number, right: number, last: number, shortest: number): void {
    this.base.domain([0, last]).range([left, right]);
    this.behaviour.scaleExtent([1, Math.min(Math.max(1, (2 * last) / shortest), 1e9)]);
    this.behaviour.extent([
      [left, 0],
      [right, this.element.clientHeight],
    ]);
  }

  /** Show the times of a span, or all, without calling a handler; does nothing if they are visible, so that a gesture can go on. */
  follow(span: readonly [number, number] | null): void {
    const [from, to] = this.x.domain();
    const [first, last] = span ?? this.base.domain();
    const tolerance = 1e-6 * (to - from);
    if (Math.abs(from - first) < tolerance && Math.abs(to - last) < tolerance) return;
    const transform = span === null ? zoomIdentity : this.transformOf(span);
    const constrained = this.constrained(transform);
    this.silent = true;
    this.behaviour.transform(this.selection, constrained);
    this.silent = false;
  }

  /** Zoom around a pixel, or around the middle. */
  scaleBy(factor: number, around?: number): void {
    const [left, right] = this.base.range();
    this.behaviour.scaleBy(this.selection, factor, [around ?? (left + right) / 2, 0]);
  }

  /** Pan by a share of the visible range; positive is later. */
  panBy(share: number): void {
    const [left, right] = this.base.range();
    const { k } = zoomTransform(this.element);
    this.behaviour.translateBy(this.selection, (-share * (right - left)) / k, 0);
  }

  /** Return whether d3-zoom handles an event: not the wheel, which `wheeled` handles, and no click with shift. */
  private zooms(event: MouseEvent): boolean {
    return event.type !== "wheel" && !event.button && !event.shiftKey && !this.handlers.busy();
  }

  private transformOf([from, to]: readonly [number, number]): ZoomTransform {
    const [left, right] = this.base.range();
    const [, most] = this.behaviour.scaleExtent();
    const k = Math.min(Math.max((right - left) / (this.base(to) - this.base(from)), 1), most);
    return zoomIdentity.translate(left - k * this.base(from), 0).scale(k);
  }

  private constrained(transform: ZoomTransform): ZoomTransform {
    const [left, right] = this.base.range();
    const { k, x, y } = transform;
    const inside = Math.min(Math.max(x, right * (1 - k)), left * (1 - k));
    return inside === x ? transform : zoomIdentity.translate(inside, y).scale(k);
  }

  private zoomed({ sourceEvent, transform }: D3ZoomEvent<HTMLElement, unknown>): void {
    const dragged = sourceEvent instanceof MouseEvent ? sourceEvent.type === "mousemove" : isOneFinger(sourceEvent);
    if (dragged) this.handlers.scrolled(this.lastY - transform.y);
    this.lastY = transform.y;
    if (!this.silent) this.handlers.moved();
  }

  private wheeled(event: WheelEvent): void {
    const turn = turnOf(event, this.wheel);
    if (turn.does === "scroll" && !this.handlers.scrolled(turn.pixels)) {
      this.handlers.idled();
      return; // the page's
    }
    event.preventDefault();
    const { left } = this.element.getBoundingClientRect();
    if (turn.does === "zoom") this.scaleBy(turn.factor, event.clientX - left);
    else if (turn.does === "stretch") this.handlers.stretched(turn.factor);
    else if (turn.does === "pan") this.panBy(turn.pixels / (this.base.range()[1] - this.base.range()[0]));
  }
}

function isOneFinger(event: unknown): boolean {
  return typeof TouchEvent !== "undefined" && event instanceof TouchEvent && event.touches.length === 1;
}
