/** The whole timeline in small, with a window over what the picture shows; dragging the window moves the picture. */

import { CanvasSurface } from "./canvas_surface.js";
import { make } from "./dom.js";
import type { Frame } from "./frame.js";
import { EDGES, type Plot } from "./plot.js";
import type { BarRef } from "./search.js";
import type { Strip } from "./surface.js";

const HEIGHT = 44;
const LEAST_WINDOW = 6;

export class Minimap {
  readonly element = make("div", { class: "pp-minimap", "aria-hidden": "true" });
  private readonly canvas = make("canvas");
  private readonly surface = new CanvasSurface(this.canvas);
  private readonly window = make("div", { class: "pp-window" });
  private width = 1;
  private last = 1;
  private grabbed = 0;

  /** `move` gets the time on which the picture should centre. */
  constructor(private readonly move: (middle: number) => void) {
    this.element.append(this.canvas, this.window);
    this.element.addEventListener("pointerdown", (event) => this.grab(event));
    this.element.addEventListener("pointermove", (event) => {
      if (this.element.hasPointerCapture(event.pointerId)) this.drag(event);
    });
  }

  /** Draw everything anew. */
  draw(frame: Frame, last: number, found: readonly BarRef[]): void {
    const { theme, plots } = frame;
    this.width = Math.max(1, this.element.clientWidth);
    this.last = last;
    this.surface.begin(this.width, HEIGHT, window.devicePixelRatio);
    this.surface.rect(0, 0, this.width, HEIGHT, theme.base.lane);
    const each = HEIGHT / frame.shown.length;
    const strips = frame.shown.flatMap((plot, at) => stripsOf(frame, plot, at * each + 1, each - 2));
    this.surface.strips(strips, { from: 0, scale: this.width / last, left: 0, width: this.width });
    for (const { view, bar } of found) {
      const x = (plots[view].start[bar] / last) * this.width;
      this.surface.rect(x - 0.75, 0, 1.5, HEIGHT, theme.base.limit);
    }
  }

  /** Put the window over what shows. */
  place([from, to]: readonly [number, number]): void {
    const width = Math.max(((to - from) / this.last) * this.width, LEAST_WINDOW);
    const left = Math.min((from / this.last) * this.width, this.width - width);
    this.window.style.left = `${left}px`;
    this.window.style.width = `${width}px`;
    this.element.classList.toggle("pp-whole", width >= this.width - 0.5);
  }

  private grab(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.element.setPointerCapture(event.pointerId);
    const own = this.window.getBoundingClientRect();
    const inside = event.clientX >= own.left && event.clientX <= own.right;
    this.grabbed = inside ? event.clientX - (own.left + own.width / 2) : 0;
    this.drag(event);
  }

  private drag(event: PointerEvent): void {
    const x = event.clientX - this.grabbed - this.element.getBoundingClientRect().left;
    this.move((x / this.width) * this.last);
  }
}

function stripsOf(frame: Frame, plot: Plot, top: number, height: number): Strip[] {
  const palette = frame.theme.bars[plot.index];
  const each = height / plot.lanes;
  return plot.tracks.flatMap((tracks, lane) =>
    tracks.map((track) => {
      const [low, high] = EDGES[track.part];
      return { track, palette, top: top + (lane + low) * each, height: (high - low) * each };
    }),
  );
}
