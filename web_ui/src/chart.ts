/** The picture on the page: a canvas for the timeline, one for highlights, and the pointer over them. */

import { nearEdge } from "./band.js";
import { CanvasSurface } from "./canvas_surface.js";
import type { Description } from "./describe.js";
import { make } from "./dom.js";
import { type Frame, RIGHT } from "./frame.js";
import { type Drag, Grabs, type Point } from "./grabs.js";
import { drawHighlights, type Lit } from "./highlight.js";
import { type Hit, hitAt } from "./hit.js";
import { AXIS, comfortableHeight, layOut } from "./layout.js";
import type { Theme } from "./palette.js";
import { drawPicture, shortLabel } from "./picture.js";
import type { Plot } from "./plot.js";
import { LongPress } from "./press.js";
import type { State } from "./state.js";
import { Tooltip } from "./tooltip.js";
import { TimeZoom } from "./zoom.js";

/** Duration of a hint in milliseconds. */
const HINT_MS = 2200;

export interface ChartHandlers {
  moved(): void;
  stretched(by: number): void;
  resized(): void;
  hovered(hit: Hit | null): void;
  clicked(hit: Hit | null): void;
  /** Drag that starts at a point; null for panning. */
  grabbed(event: PointerEvent, point: Point): Drag | null;
}

export class Chart {
  readonly element = make("div", { class: "pp-chart", tabindex: 0, role: "application" });
  readonly tooltip = new Tooltip();
  readonly zoom: TimeZoom;
  readonly grabs: Grabs;
  /** Position of the pointer over the picture; null outside it. */
  pointer: number | null = null;
  scroll = 0;
  private readonly under = make("canvas", { "aria-hidden": "true" });
  private readonly over = make("canvas", { "aria-hidden": "true" });
  private readonly thumb = make("div", { class: "pp-thumb", hidden: true });
  private readonly picture = new CanvasSurface(this.under);
  private readonly lights = new CanvasSurface(this.over);
  private readonly hint = make("div", { class: "pp-hint", "aria-hidden": "true", hidden: true });
  private readonly press: LongPress;
  private hinting: ReturnType<typeof setTimeout> | undefined;
  private readonly observer: ResizeObserver;

  constructor(private readonly handlers: ChartHandlers) {
    this.element.append(this.under, this.over, this.thumb, this.hint, this.tooltip.element);
    this.grabs = new Grabs(this.element, (event, point) => handlers.grabbed(event, point));
    this.zoom = new TimeZoom(this.element, {
      moved: () => handlers.moved(),
      scrolled: (by) => this.scrollBy(by),
      stretched: (by) => handlers.stretched(by),
      busy: () => this.grabs.active || this.press.active,
      idled: () => this.hintAt(),
    });
    this.element.addEventListener("pointermove", (event) => this.pointed(event));
    this.element.addEventListener("pointerleave", (event) => this.left(event));
    this.press = new LongPress(this.element, {
      began: () => handlers.hovered(null),
      pointed: (point) => handlers.hovered(this.hitAt(point)),
    });
    this.element.addEventListener("click", (event) => handlers.clicked(this.hitOf(event)));
    this.observer = new ResizeObserver(() => handlers.resized());
    this.observer.observe(this.element);
  }

  /** Last drawn frame. */
  frame: Frame | null = null;

  /** Set the preferred height of the element: as much as the lanes can use. */
  prefer(visible: readonly Plot[], state: State): void {
    this.element.style.setProperty(
      "--pp-height",
      `${AXIS + Math.ceil(comfortableHeight(visible, state) * state.tall)}px`,
    );
  }

  /** Lay out the content for the current size of the element. */
  arrange(plots: readonly Plot[], visible: readonly Plot[], theme: Theme, state: State): Frame {
    const { clientWidth: width, clientHeight: height } = this.element;
    const left = this.leftOf(visible);
    const last = Math.max(...visible.map((plot) => plot.view.makespan)) || 1;
    this.zoom.fit(left, Math.max(width - RIGHT, left + 1), last, Math.min(...visible.map((plot) => plot.shortest)));
    this.zoom.follow(state.span);
    const content = layOut(visible, state, height - AXIS);
    this.scroll = Math.min(Math.max(this.scroll, 0), Math.max(0, content.height - (height - AXIS)));
    this.showScroll(content.height, height - AXIS);
    this.frame = { plots, visible, theme, state, content, width, height, left, scroll: this.scroll, x: this.zoom.x };
    return this.frame;
  }

  draw(frame: Frame): void {
    this.picture.begin(frame.width, frame.height, window.devicePixelRatio);
    drawPicture(this.picture, frame);
  }

  light(frame: Frame, lit: Lit): void {
    this.lights.begin(frame.width, frame.height, window.devicePixelRatio);
    drawHighlights(this.lights, frame, lit);
  }

  /** Scroll the content up; return false if it cannot scroll. */
  scrollBy(pixels: number): boolean {
    const before = this.scroll;
    this.scroll = Math.min(Math.max(this.scroll + pixels, 0), this.deepest);
    if (this.scroll !== before) this.handlers.moved();
    return this.scroll !== before;
  }

  /** Maximum vertical scroll offset. */
  get deepest(): number {
    return Math.max(0, (this.frame?.content.height ?? 0) - (this.element.clientHeight - AXIS));
  }

  destroy(): void {
    clearTimeout(this.hinting);
    this.observer.disconnect();
  }

  /** Show a scroll thumb next to content that is higher than its window. */
  private showScroll(content: number, room: number): void {
    this.thumb.hidden = content <= room;
    this.thumb.style.top = `${AXIS + (this.scroll / content) * room}px`;
    this.thumb.style.height = `${(room / content) * room}px`;
    // If the picture cannot scroll, the page does, and must receive touches.
    this.element.classList.toggle("pp-scrolls", content > room);
    this.element.classList.toggle("pp-fits", this.zoom.all);
  }

  /** Show a hint which turn of the wheel zooms, if the page cannot scroll either. */
  private hintAt(): void {
    const page = document.scrollingElement;
    if (page !== null && page.scrollHeight > page.clientHeight) return;
    this.hint.textContent = "ctrl + wheel zooms";
    this.hint.hidden = false;
    clearTimeout(this.hinting);
    this.hinting = setTimeout(() => {
      this.hint.hidden = true;
    }, HINT_MS);
  }

  private leftOf(plots: readonly Plot[]): number {
    const labels = new Set(plots.flatMap((plot) => plot.view.lanes.label.map(shortLabel)));
    const longest = Math.max(...[...labels].map((label) => this.picture.textWidth(label, 11)));
    return Math.ceil(Math.max(longest, 62)) + 16;
  }

  /** Show a tooltip next to a point of the picture. */
  showTooltip(description: Description, x: number, y: number): void {
    const { top } = this.element.getBoundingClientRect();
    this.tooltip.show(description, x, y, this.element.clientWidth, window.innerHeight - top);
  }

  private pointed(event: PointerEvent): void {
    const { left, top } = this.element.getBoundingClientRect();
    const point = { x: event.clientX - left, y: event.clientY - top };
    this.pointer = this.frame !== null && point.x >= this.frame.left ? point.x : null;
    if (event.pointerType === "touch" || event.buttons !== 0) return;
    this.handlers.hovered(this.hitAt(point));
    const edge = this.frame !== null && nearEdge(this.frame, this.frame.state.band, point);
    this.element.classList.toggle("pp-on-edge", edge);
  }

  /** Hide highlights when the pointer leaves; a lifted finger keeps its result visible. */
  private left(event: PointerEvent): void {
    this.pointer = null;
    if (event.pointerType !== "touch") this.handlers.hovered(null);
  }

  private hitOf(event: MouseEvent): Hit | null {
    const { left, top } = this.element.getBoundingClientRect();
    return this.hitAt({ x: event.clientX - left, y: event.clientY - top });
  }

  hitAt({ x, y }: Point): Hit | null {
    return this.frame === null ? null : hitAt(this.frame, x, y);
  }
}
