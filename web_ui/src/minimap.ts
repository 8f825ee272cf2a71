/** Overview of the timeline with a brush over its visible part, moved by pointer, finger or keys. */

import { CanvasSurface } from "./canvas_surface.js";
import { make } from "./dom.js";
import { Times } from "./format.js";
import type { Frame } from "./frame.js";
import type { TimeWindow } from "./mix.js";
import { mixParts } from "./picture.js";
import { EDGES, type Plot } from "./plot.js";
import type { BarRef } from "./search.js";
import type { Strip } from "./surface.js";

const LEAST_WINDOW = 6;
/** Height in pixels of a single timeline, and of each of several. */
const HEIGHT = 44;
const EACH = 15;
/** Height of lanes below which all lanes are drawn as one strip of shares. */
const LOWEST_LANE = 3;
/** Maximum movement of a click in pixels. */
const CLICK = 3;
/** Step of a key, as a share of the visible part. */
const STEP = 0.1;

export type Span = readonly [number, number];

type Hold = "window" | "from" | "to" | "new";

export class Minimap {
  readonly element = make("div", { class: "pp-minimap", role: "group", "aria-label": "visible part of the timeline" });
  private readonly canvas = make("canvas", { "aria-hidden": "true" });
  private readonly surface = new CanvasSurface(this.canvas);
  private readonly handles = {
    window: handle("pp-window", "visible time"),
    from: handle("pp-edge pp-edge-from", "start of the visible part"),
    to: handle("pp-edge pp-edge-to", "end of the visible part"),
  } as const;
  private readonly before = make("div", { class: "pp-outside" });
  private readonly after = make("div", { class: "pp-outside" });
  private width = 1;
  private last = 1;
  private span: Span = [0, 1];
  private times = Times.of([1], "");
  private hold: Hold = "window";
  private begun = { x: 0, span: [0, 1] as Span, moved: false };

  /** `move` receives the new visible range of time. */
  constructor(private readonly move: (span: Span) => void) {
    const { window: brush, from, to } = this.handles;
    this.element.append(this.canvas, this.before, this.after, brush, from, to);
    this.element.addEventListener("pointerdown", (event) => this.grab(event));
    this.element.addEventListener("pointermove", (event) => {
      if (this.element.hasPointerCapture(event.pointerId)) this.drag(event);
    });
    this.element.addEventListener("pointerup", (event) => this.release(event));
    this.element.addEventListener("dblclick", () => this.go([0, this.last]));
    for (const hold of ["window", "from", "to"] as const) {
      this.handles[hold].addEventListener("keydown", (event) => this.typed(event, hold));
    }
  }

  /** Redraw the overview. */
  draw(frame: Frame, last: number, matches: readonly BarRef[]): void {
    const { theme, visible } = frame;
    const height = visible.length === 1 ? HEIGHT : Math.max(HEIGHT, Math.min(EACH * visible.length, 2.5 * HEIGHT));
    this.element.style.height = `${height}px`;
    this.width = Math.max(1, this.element.clientWidth);
    this.last = last;
    const units = new Set(visible.map((plot) => plot.view.unit));
    this.times = Times.of([last], units.size === 1 ? [...units][0] : "");
    this.surface.begin(this.width, height, window.devicePixelRatio);
    this.surface.rect(0, 0, this.width, height, theme.base.page);
    const view = { from: 0, scale: this.width / last, left: 0, width: this.width };
    const step = height / visible.length;
    visible.forEach((plot, at) => {
      const gap = visible.length > 1 ? 2 : 1;
      this.drawPlot(frame, plot, at * step + gap / 2, step - gap, view);
    });
    for (const { view: index, bar } of matches) {
      const at = visible.findIndex((plot) => plot.index === index);
      const x = ((frame.plots[index]?.start[bar] ?? 0) / last) * this.width;
      if (at >= 0) this.surface.rect(x - 0.75, at * step, 1.5, step, theme.base.limit);
    }
  }

  private drawPlot(frame: Frame, plot: Plot, top: number, height: number, view: TimeWindow): void {
    const { theme } = frame;
    this.surface.rect(0, top, plot.view.makespan * view.scale, height, theme.base.lane);
    if (height / plot.lanes >= LOWEST_LANE) this.surface.strips(stripsOf(frame, plot, top, height), view);
    else {
      const lanes = [...Array(plot.lanes).keys()];
      const parts = lanes.flatMap((lane) => mixParts(theme, plot, lane, 1 / plot.lanes));
      this.surface.mixes([{ parts, top, height }], view);
    }
  }

  /** Move the brush over the visible part. */
  place(span: Span): void {
    this.span = span;
    const [from, to] = span;
    const width = Math.max(((to - from) / this.last) * this.width, LEAST_WINDOW);
    const left = Math.min((from / this.last) * this.width, this.width - width);
    const { window: brush, from: start, to: end } = this.handles;
    brush.style.left = start.style.left = `${left}px`;
    brush.style.width = `${width}px`;
    end.style.left = `${left + width}px`;
    this.before.style.width = `${left}px`;
    this.after.style.left = `${left + width}px`;
    this.element.classList.toggle("pp-whole", width >= this.width - 0.5);
    this.setValue(brush, (from + to) / 2, `${this.times.number(from)} to ${this.times.text(to)}`);
    this.setValue(start, from, this.times.text(from));
    this.setValue(end, to, this.times.text(to));
  }

  private setValue(element: HTMLElement, value: number, text: string): void {
    const share = (100 * value) / this.last;
    element.setAttribute("aria-valuenow", share.toFixed(1));
    element.setAttribute("aria-valuetext", text);
  }

  private grab(event: PointerEvent): void {
    if (event.button !== 0 || !event.isPrimary) return;
    this.element.setPointerCapture(event.pointerId);
    const x = this.xOf(event);
    this.hold = this.holdAt(x, event.pointerType === "touch" ? 16 : 6);
    this.begun = { x, span: this.span, moved: false };
    const own = this.hold === "new" ? "window" : this.hold;
    this.handles[own].focus({ preventScroll: true });
    event.preventDefault();
  }

  /** An edge takes precedence over the window; if everything is visible, a drag draws a new window. */
  private holdAt(x: number, reach: number): Hold {
    const [from, to] = this.span.map((time) => (time / this.last) * this.width);
    const narrow = Math.min(reach, Math.max((to - from) / 4, 2));
    if (Math.abs(x - from) <= (x < from ? reach : narrow)) return "from";
    if (Math.abs(x - to) <= (x > to ? reach : narrow)) return "to";
    const whole = to - from >= this.width - 0.5;
    return x > from && x < to && !whole ? "window" : "new";
  }

  private drag(event: PointerEvent): void {
    const { x, span, moved } = this.begun;
    const here = this.xOf(event);
    if (!moved && Math.abs(here - x) < CLICK) return;
    this.begun.moved = true;
    const time = this.timeAt(here);
    if (this.hold === "window") this.slide(span, this.timeAt(here - x, false));
    else if (this.hold === "new") this.set(this.timeAt(x), time);
    else this.set(this.hold === "from" ? span[1] : span[0], time);
  }

  /** Centre the window at a click outside of it. */
  private release(event: PointerEvent): void {
    if (!this.element.hasPointerCapture(event.pointerId)) return;
    const { x, span, moved } = this.begun;
    const whole = span[1] - span[0] >= this.last;
    if (!moved && this.hold === "new" && !whole) this.slide(span, this.timeAt(x) - (span[0] + span[1]) / 2);
  }

  private go(span: Span): void {
    this.span = span; // further keys count from here, drawn or not
    this.move(span);
  }

  private slide([from, to]: Span, by: number): void {
    const shift = Math.min(Math.max(by, -from), this.last - to);
    this.go([from + shift, to + shift]);
  }

  private set(one: number, other: number): void {
    const least = (LEAST_WINDOW / this.width) * this.last;
    const from = Math.min(one, other, this.last - least);
    this.go([from, Math.max(one, other, from + least)]);
  }

  private typed(event: KeyboardEvent, hold: Exclude<Hold, "new">): void {
    const step = (this.span[1] - this.span[0]) * STEP;
    const by = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step }[event.key];
    const whole = { Home: -this.last, End: this.last, PageUp: 10 * step, PageDown: -10 * step }[event.key];
    const change = by ?? whole;
    if (change === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const [from, to] = this.span;
    if (hold === "window") this.slide(this.span, change);
    else if (hold === "from") this.go([Math.max(0, Math.min(from + change, to - step)), to]);
    else this.go([from, Math.min(this.last, Math.max(to + change, from + step))]);
  }

  private xOf(event: PointerEvent): number {
    return event.clientX - this.element.getBoundingClientRect().left;
  }

  private timeAt(x: number, clamped = true): number {
    const time = (x / this.width) * this.last;
    return clamped ? Math.min(Math.max(time, 0), this.last) : time;
  }
}

function handle(name: string, label: string): HTMLElement {
  return make("div", {
    class: name,
    role: "slider",
    tabindex: 0,
    "aria-label": label,
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": 0,
  });
}

function stripsOf(frame: Frame, plot: Plot, top: number, height: number): Strip[] {
  const palette = frame.theme.bars[plot.index];
  const laneHeight = height / plot.lanes;
  return plot.tracks.flatMap((tracks, lane) =>
    tracks.map((track) => {
      const [low, high] = EDGES[track.part];
      return { track, palette, top: top + (lane + low) * laneHeight, height: (high - low) * laneHeight };
    }),
  );
}
