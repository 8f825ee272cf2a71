/** The timeline on a page: it owns the data and the state, and updates all visible parts. */

import { Chart } from "./chart.js";
import type { ThemeName, TimelineData } from "./data.js";
import { type Description, describeBar, describeGap, sentence } from "./describe.js";
import { make } from "./dom.js";
import { type Editing, type Ghost, step } from "./editing.js";
import { download, fileName, pngOf, svgOf, titleOf } from "./export.js";
import { Flight } from "./flight.js";
import type { Frame } from "./frame.js";
import { type Drag, Either, type Point } from "./grabs.js";
import { Help } from "./help.js";
import { boxOf } from "./highlight.js";
import type { Hit } from "./hit.js";
import { type Commands, pressed } from "./keyboard.js";
import { AXIS, canOverlay } from "./layout.js";
import { fillLegend, legendEntries } from "./legend.js";
import { Measuring } from "./measuring.js";
import { Minimap } from "./minimap.js";
import { dragOf } from "./moving.js";
import { Shading, Theme } from "./palette.js";
import { Picks } from "./picks.js";
import { anyTooFine } from "./picture.js";
import { Plot } from "./plot.js";
import { rememberedWheel, rememberWheel } from "./remembered.js";
import { type BarRef, findBars, parseQuery } from "./search.js";
import type { Band } from "./state.js";
import { fromFragment, MOST_TALL, type State, toFragment } from "./state.js";
import { fillTables } from "./table.js";
import { type Actions, Toolbar } from "./toolbar.js";

export interface TimelineOptions {
  /** Initial state, as in a link's fragment. */
  readonly fragment?: string;
  /** Called with the new fragment after each change of the state. */
  readonly onFragment?: (fragment: string) => void;
  /** Called after the selected op changes. */
  readonly onSelect?: (op: State["op"]) => void;
  /** Lets the user move ops; see `editing`. */
  readonly editing?: Editing;
  /** Element of the page above the toolbar, in the colours of the timeline. */
  readonly above?: HTMLElement;
}

/** Minimum width in pixels of an op after a jump to it. */
const ROOM = 56;
/** Visible range around a zoomed op and around an interval, in multiples of its length. */
const OP_ROOM = 6;
const BAND_ROOM = 1.2;
/** Height of a row of the summary table in pixels, and the rows that its caption, head and foot take. */
const TABLE_ROW = 25;
const TABLE_HEAD = 4;

export class Timeline {
  private readonly chart: Chart;
  private readonly toolbar: Toolbar;
  private readonly minimap: Minimap;
  private readonly legend = make("ul", { class: "pp-legend", "aria-label": "colours" });
  private readonly status = make("div", { class: "pp-status", role: "status", "aria-live": "polite" });
  private readonly tables = make("div");
  private readonly details = make("details", {}, make("summary", {}, "Summary table"), this.tables);
  private readonly help = new Help();
  private readonly root = make("div", { class: "pp-timeline" });
  private readonly dark = window.matchMedia("(prefers-color-scheme: dark)");
  private readonly picks = new Picks();
  private readonly measuring: Measuring;
  private readonly flight: Flight;
  private readonly commands: Commands;
  private plots: readonly Plot[] = [];
  private theme: Theme | null = null;
  private state: State;
  private shading: Shading | null = null;
  private editing: Editing | null;
  private settled = false;
  private waiting = 0;
  private stale: "lights" | "picture" | "all" = "all";

  constructor(
    private readonly host: HTMLElement,
    private data: TimelineData,
    private readonly options: TimelineOptions = {},
  ) {
    this.state = fromFragment(options.fragment ?? "");
    this.editing = options.editing ?? null;
    this.chart = new Chart({
      moved: () => this.moved(),
      stretched: (by) => this.stretchBy(by),
      resized: () => this.refresh("all"),
      hovered: (hit) => this.hover(hit),
      clicked: (hit) => this.click(hit),
      grabbed: (event, point) => this.grab(event, point),
    });
    this.minimap = new Minimap((span) => this.showSpan(span));
    this.measuring = new Measuring({
      frame: () => this.draw(),
      band: () => this.state.band,
      choose: (band) => this.measure(band),
      changed: () => this.lightBand(),
      showTooltip: (description, x, y) => this.chart.showTooltip(description, x, y),
      hideTooltip: () => this.chart.tooltip.hide(),
      fit: () => this.fit(),
      clear: () => this.set({ band: null }),
      announce: (text) => {
        this.status.textContent = text;
      },
    });
    this.toolbar = new Toolbar(this.actions());
    this.flight = new Flight({
      zoom: (factor) => this.chart.zoom.scaleBy(factor, this.chart.pointer ?? this.focusX()),
      pan: (share) => this.chart.zoom.panBy(share),
    });
    this.commands = this.commandsOf();
    this.chart.zoom.wheel = rememberedWheel();
    this.build();
    this.update(data);
  }

  /** Show other data; the state stays as far as it still applies. */
  update(data: TimelineData): void {
    if (data.views.length === 0) throw new Error("a timeline needs at least one view");
    this.data = data;
    const before = this.plots;
    this.plots = data.views.map((view, index) => new Plot(view, index));
    this.shade();
    this.picks.renew(before, this.plots, this.state);
    this.picks.band = this.state.band;
    this.useTheme();
    this.fillTables();
    this.chart.element.setAttribute("aria-label", this.label());
    this.chart.prefer(this.visible, this.state);
    this.refresh("all");
  }

  /** Show only some views, by their numbers; null for all. The others keep their state. */
  show(views: readonly number[] | null): void {
    this.set({ views: views === null ? null : [...views].sort((one, other) => one - other) });
  }

  /** Enable or disable the moving of ops. */
  edit(editing: Editing | null): void {
    this.editing = editing;
    this.chart.grabs.cancel();
    this.chart.element.classList.toggle("pp-editing", editing !== null);
  }

  /** Change a part of the state. */
  set(change: Partial<State>): void {
    const before = this.state;
    this.state = { ...before, ...change };
    this.picks.follow(this.plots, before, this.state);
    this.picks.band = this.measuring.dragged ?? this.state.band;
    if (before.scale !== this.state.scale) this.shade();
    if (before.theme !== this.state.theme || before.scale !== this.state.scale) this.useTheme();
    if (before.views !== this.state.views) this.fillTables();
    this.chart.prefer(this.visible, this.state);
    this.refresh("all");
    if (before.op !== this.state.op) this.options.onSelect?.(this.state.op);
    this.options.onFragment?.(toFragment(this.state));
  }

  /** Restore the state of a link's fragment. */
  setFragment(fragment: string): void {
    if (fragment !== toFragment(this.state)) this.set(fromFragment(fragment));
  }

  get fragment(): string {
    return toFragment(this.state);
  }

  /** Return the visible part as the text of an SVG file. */
  svg(): string {
    return svgOf(this.draw(), this.picks.lit);
  }

  /** Return the visible part as a PNG file. */
  png(ratio = Math.max(2, window.devicePixelRatio)): Promise<Blob> {
    return pngOf(this.draw(), this.picks.lit, ratio);
  }

  /** Return the position of an op on the page, in the coordinates of pointer events; null if it is not visible. */
  placeOf(view: number, name: string): DOMRect | null {
    const frame = this.draw();
    const query = parseQuery(name);
    const plot = this.plots[view];
    if (query === null || plot === undefined) return null;
    const ref = findBars([plot], query).find(({ bar }) => plot.name(bar) === name);
    const box = ref === undefined ? null : boxOf(frame, ref);
    const { left, top } = this.chart.element.getBoundingClientRect();
    return box && new DOMRect(left + box.x, top + box.y, box.width, box.height);
  }

  /** Names of the highlighted ops: the selected op's chain, each view's critical path, the matches of a search. */
  get lit(): { chain: string[]; critical: string[][]; found: string[] } {
    const { chain, critical } = this.picks.lit;
    const names = (refs: readonly BarRef[]) => refs.map(({ view, bar }) => this.plots[view].name(bar));
    return { chain: names(chain), critical: critical.map(names), found: names(this.picks.matches) };
  }

  /** Remove the timeline from the page. */
  destroy(): void {
    cancelAnimationFrame(this.waiting);
    this.dark.removeEventListener("change", this.themeChanged);
    this.flight.stop();
    this.chart.destroy();
    this.root.remove();
  }

  /** Visible plots; all of them if none of the requested ones exists. */
  private get visible(): readonly Plot[] {
    const { views } = this.state;
    const visible = views === null ? this.plots : this.plots.filter((plot) => views.includes(plot.index));
    return visible.length > 0 ? visible : this.plots;
  }

  /** Colour ops by the data's scale if the state enables it. */
  private shade(): void {
    const { scale = null } = this.data;
    this.shading = scale !== null && this.state.scale ? new Shading(scale) : null;
    for (const plot of this.plots) {
      plot.recolour(this.shading?.colours(plot.index) === true ? this.shading.codes(plot.index, plot.bars) : null);
    }
  }

  private build(): void {
    const { root, chart, toolbar, minimap, details } = this;
    details.addEventListener("toggle", () => this.fillTables());
    if (this.options.above !== undefined) root.append(this.options.above);
    root.append(
      toolbar.element,
      chart.element,
      minimap.element,
      this.legend,
      this.measuring.panel.element,
      this.status,
      details,
      this.help.element,
    );
    this.host.append(root);
    chart.element.addEventListener("keydown", (event) => this.typed(event));
    root.addEventListener("keydown", (event) => this.typedAnywhere(event));
    root.addEventListener("pointerdown", (event) => this.touchedBeside(event));
    this.dark.addEventListener("change", this.themeChanged);
  }

  /** The result of a touch stays when the finger is lifted, until the next touch. */
  private touchedBeside({ target }: PointerEvent): void {
    if (target instanceof Node && !this.chart.element.contains(target)) this.chart.tooltip.hide();
  }

  private readonly themeChanged = (): void => {
    this.useTheme();
    this.refresh("all");
  };

  private useTheme(): void {
    const system: ThemeName = this.dark.matches ? "dark" : "light";
    const name = this.state.theme === "auto" ? system : this.state.theme;
    this.theme = new Theme(this.data, name, this.plots, this.shading);
    const { page, lane, grid, text, faint, limit } = this.theme.base;
    for (const [part, colour] of Object.entries({ page, lane, grid, text, faint, limit })) {
      this.root.style.setProperty(`--pp-${part}`, colour);
    }
    this.root.style.colorScheme = name;
    this.host.dataset.theme = name;
  }

  private themeNow(): Theme {
    if (this.theme === null) throw new Error("a timeline has a theme once it has data");
    return this.theme;
  }

  private refresh(what: "lights" | "picture" | "all"): void {
    if (this.stale !== "all" && what !== "lights") this.stale = what;
    if (this.waiting === 0) this.waiting = requestAnimationFrame(() => this.draw());
  }

  private draw(): Frame {
    cancelAnimationFrame(this.waiting);
    this.waiting = 0;
    const stale = this.stale;
    this.stale = "lights";
    if (stale === "lights" && this.chart.frame !== null) {
      this.chart.light(this.chart.frame, this.picks.lit);
      return this.chart.frame;
    }
    const frame = this.chart.arrange(this.plots, this.visible, this.themeNow(), this.state);
    this.chart.draw(frame);
    this.chart.light(frame, this.picks.lit);
    if (stale === "all") this.drawAround(frame);
    this.legend.classList.toggle("pp-fine", anyTooFine(frame, window.devicePixelRatio));
    this.minimap.place(frame.x.domain() as [number, number]);
    if (stale === "all" && !this.settled) this.settle();
    return frame;
  }

  /** Open the summary table if the first picture leaves room for it. */
  private settle(): void {
    this.settled = true;
    const { bottom } = this.root.getBoundingClientRect();
    const rows = this.visible.reduce((sum, plot) => sum + plot.lanes + TABLE_HEAD, 0);
    if (this.details.getBoundingClientRect().bottom + rows * TABLE_ROW < bottom) this.details.open = true;
  }

  /** Static parts around the picture. */
  private drawAround(frame: Frame): void {
    const last = Math.max(...this.visible.map((plot) => plot.view.makespan)) || 1;
    this.minimap.element.style.marginLeft = `${frame.left}px`;
    this.minimap.draw(frame, last, this.picks.matches);
    this.measuring.follow(frame);
    fillLegend(this.legend, legendEntries(this.visible, frame.theme, this.state));
    const possible = {
      gaps: this.visible.some((plot) => plot.gaps !== null),
      memory: this.visible.some((plot) => plot.memory !== null),
      overlay: canOverlay(this.visible),
      scale: (this.data.scale ?? null) !== null,
    };
    this.toolbar.update(this.state, possible, this.picks.matchText(this.state.query), this.chart.zoom.wheel);
  }

  /** Fill the tables only while they are open, because they cost as much time as the picture. */
  private fillTables(): void {
    if (this.details.open) fillTables(this.tables, this.visible, this.themeNow());
  }

  private label(): string {
    const titles = this.visible.map((plot) => plot.view.title).join(", ");
    return `Timeline of ${titles}. Arrow keys move between ops, the question mark lists all keys; the summary table has the same figures.`;
  }

  private moved(): void {
    this.state = { ...this.state, span: this.chart.zoom.all ? null : (this.chart.zoom.x.domain() as [number, number]) };
    this.chart.tooltip.hide();
    this.refresh("picture");
    this.options.onFragment?.(toFragment(this.state));
  }

  private hover(hit: Hit | null): void {
    if (this.picks.hover(hit)) this.refresh("lights");
    const { tooltip } = this.chart;
    const description = hit === null ? null : this.descriptionOf(hit);
    if (description === null || hit === null) tooltip.hide();
    else this.chart.showTooltip(description, hit.x, hit.y);
  }

  private descriptionOf(hit: Hit): Description | null {
    if (hit.bar >= 0) return this.describe({ view: hit.plot.index, bar: hit.bar });
    return hit.gap >= 0 ? describeGap(hit.plot, this.themeNow(), hit.gap) : null;
  }

  private grab(event: PointerEvent, point: Point): Drag | null {
    const touch = event.pointerType === "touch";
    if (event.shiftKey && !touch) return this.measuring.begin(point);
    const moved = this.dragOfOp(event, point) ?? (touch ? null : this.measuring.resume(point));
    if (moved !== null || touch || !this.chart.zoom.all) return moved;
    // Panning has no effect here: a drag measures, or scrolls the lanes if they overflow.
    return new Either(
      point,
      this.measuring.begin(point),
      this.chart.deepest > 0 ? (by) => this.chart.scrollBy(by) : null,
    );
  }

  private dragOfOp(event: PointerEvent, point: Point): Drag | null {
    const hit = this.chart.hitAt(point);
    if (hit === null || this.editing === null || !this.grabbable(event, hit)) return null;
    return dragOf(this.editing, hit, { frame: () => this.draw(), show: (ghost) => this.hang(ghost) });
  }

  /** A finger moves the picture unless it lies on the op that is selected already. */
  private grabbable({ pointerType }: PointerEvent, { plot, bar }: Hit): boolean {
    const { selected } = this.picks;
    return pointerType !== "touch" || (selected?.view === plot.index && selected.bar === bar);
  }

  private hang(ghost: Ghost | null): void {
    this.picks.ghost = ghost;
    this.picks.hover(null);
    this.chart.tooltip.hide();
    this.status.textContent = ghost?.refused ?? "";
    this.refresh("lights");
  }

  /** Move the focused op by keys. */
  private moveBy(by: number): boolean {
    const ref = this.picks.focused ?? this.picks.selected;
    if (this.editing === null) return false;
    if (ref === null) return true;
    const move = step(this.plots[ref.view], ref.bar, by);
    const refused = move === null ? "it is at the end of its rank already" : (this.editing.refuses?.(move) ?? null);
    if (refused !== null) this.status.textContent = refused;
    else if (move !== null && this.editing.canGrab?.(move.op) !== false) this.editing.moved(move);
    return true;
  }

  private click(hit: Hit | null): void {
    this.select(hit === null || hit.bar < 0 ? null : { view: hit.plot.index, bar: hit.bar });
  }

  /** Select an op, or clear the selection if it was selected already. */
  private select(ref: BarRef | null): void {
    const { selected } = this.picks;
    const again = ref !== null && ref.bar === selected?.bar && ref.view === selected.view;
    const op = ref === null || again ? null : { view: ref.view, name: this.plots[ref.view].name(ref.bar) };
    this.set({ op });
    if (ref !== null && op !== null) this.announceOp(ref);
  }

  private describe(ref: BarRef): Description {
    return describeBar(this.plots, this.themeNow(), ref, this.state.layout === "overlaid");
  }

  private announceOp(ref: BarRef): void {
    this.status.textContent = sentence(this.describe(ref));
  }

  private focus(ref: BarRef): void {
    this.picks.focused = ref;
    this.reveal(ref, 0);
    this.announceOp(ref);
    this.refresh("lights");
  }

  /** Move the picture so that a bar is in it and has at least this many pixels. */
  private reveal({ view, bar }: BarRef, pixels: number): void {
    const frame = this.chart.frame ?? this.draw();
    const plot = this.plots[view];
    const [from, to] = frame.x.domain();
    const [start, end] = [plot.start[bar], plot.end[bar]];
    const width = frame.x.range()[1] - frame.x.range()[0];
    const roomy = pixels > 0 ? ((end - start) * width) / pixels : to - from;
    const span = Math.min(to - from, roomy > 0 ? roomy : to - from);
    if (start < from || end > to || span < to - from) this.showAround((start + end) / 2, span);
    const row = frame.content.rowOf.get(plot)?.[plot.lane[bar]];
    if (row === undefined) return;
    if (row.top < frame.scroll) this.chart.scrollBy(row.top - frame.scroll - 8);
    const below = row.top + row.height - frame.scroll - (frame.height - AXIS);
    if (below > 0) this.chart.scrollBy(below + 8);
  }

  private showAround(middle: number, width: number): void {
    const last = Math.max(...this.visible.map((plot) => plot.view.makespan));
    const from = Math.min(Math.max(0, middle - width / 2), Math.max(0, last - width));
    this.set({ span: width >= last ? null : [from, from + width] });
  }

  private showSpan([from, to]: readonly [number, number]): void {
    const last = Math.max(...this.visible.map((plot) => plot.view.makespan));
    this.state = { ...this.state, span: from <= 0 && to >= last ? null : [from, to] };
    this.refresh("picture");
    this.options.onFragment?.(toFragment(this.state));
  }

  private measure(band: Band): void {
    this.set({ band });
    this.status.textContent = "";
  }

  private lightBand(): void {
    this.picks.hover(null);
    this.picks.band = this.measuring.dragged ?? this.state.band;
    this.refresh("lights");
  }

  /** Zoom to the measured interval, or to the op, with a margin on both sides. */
  private fit(): void {
    const { band } = this.state;
    const ref = this.picks.focused ?? this.picks.selected;
    const plot = ref === null ? null : this.plots[ref.view];
    const op = ref === null || plot === null ? null : { from: plot.start[ref.bar], to: plot.end[ref.bar] };
    const span = band ?? op;
    if (span === null) return;
    this.showAround((span.from + span.to) / 2, (span.to - span.from) * (band === null ? OP_ROOM : BAND_ROOM));
    if (band === null && ref !== null) this.reveal(ref, 0);
  }

  private mark(grown: boolean): void {
    const ref = this.picks.focused ?? this.picks.selected;
    if (ref !== null) this.measuring.mark(ref, grown);
    else this.status.textContent = "select an op to measure its interval, or drag one with shift";
  }

  private switchWheel(): void {
    const wheel = this.chart.zoom.wheel === "zoom" ? "scroll" : "zoom";
    rememberWheel(wheel);
    this.chart.zoom.wheel = wheel;
    this.refresh("all");
    this.status.textContent = wheel === "zoom" ? "the wheel zooms" : "the wheel scrolls; with ctrl it zooms";
  }

  private stretchBy(factor: number): void {
    this.set({ tall: Math.min(Math.max(this.state.tall * factor, 1), MOST_TALL) });
  }

  private step(by: number): void {
    const ref = this.picks.step(by);
    if (ref === null) return;
    this.picks.focused = ref;
    this.reveal(ref, ROOM);
    this.announceOp(ref);
    this.refresh("all");
  }

  private async save(format: "png" | "svg"): Promise<void> {
    const frame = this.draw();
    const blob = format === "svg" ? new Blob([this.svg()], { type: "image/svg+xml" }) : await this.png();
    download(blob, fileName(frame, format));
    this.status.textContent = `saved ${titleOf(frame)} as ${format.toUpperCase()}`;
  }

  private actions(): Actions {
    return {
      state: () => this.state,
      set: (change) => this.set(change),
      zoomBy: (factor) => this.chart.zoom.scaleBy(factor),
      find: (query) => this.set({ query }),
      step: (by) => this.step(by),
      save: (format) => void this.save(format),
      help: () => this.help.open(this.editing !== null),
      switchWheel: () => this.switchWheel(),
    };
  }

  private commandsOf(): Commands {
    const { chart, toolbar } = this;
    return {
      focus: (ref) => this.focus(ref),
      select: () => this.select(this.picks.focused),
      release: () => this.release(),
      zoomBy: (factor) => chart.zoom.scaleBy(factor, this.focusX()),
      panBy: (share) => chart.zoom.panBy(share),
      showAll: () => this.set({ span: null }),
      scrollBy: (pages) => void chart.scrollBy(pages * (chart.element.clientHeight - AXIS)),
      stretchBy: (factor) => this.stretchBy(factor),
      flip: (name) => toolbar.flip(name),
      moveBy: (by) => this.moveBy(by),
      switchLayout: () => canOverlay(this.visible) && toolbar.switchLayout(),
      switchTheme: () => toolbar.switchTheme(),
      search: () => toolbar.search.select(),
      step: (by) => this.step(by),
      help: () => this.help.open(this.editing !== null),
      fly: (event) => this.flight.press(event),
      mark: (grown) => this.mark(grown),
      fit: () => this.fit(),
      switchWheel: () => this.switchWheel(),
    };
  }

  private release(): void {
    if (this.chart.grabs.dragging) {
      this.chart.grabs.cancel();
      return;
    }
    this.picks.focused = null;
    this.set({ op: null, query: "", band: null });
  }

  /** Position of the focused op, to zoom around it. */
  private focusX(): number | undefined {
    const { focused } = this.picks;
    const { frame } = this.chart;
    if (focused === null || frame === null) return undefined;
    const plot = this.plots[focused.view];
    const x = frame.x((plot.start[focused.bar] + plot.end[focused.bar]) / 2);
    return x >= frame.left && x <= frame.width ? x : undefined;
  }

  /** Run the action of a key, as if the picture had the focus. */
  typed(event: KeyboardEvent): void {
    if (this.chart.frame !== null && pressed(event, this.chart.frame, this.picks.focused, this.commands)) {
      event.preventDefault();
      event.stopPropagation();
    }
  }

  /** Outside of the picture, handle only the keys for search and help. */
  private typedAnywhere(event: KeyboardEvent): void {
    if (event.target instanceof HTMLInputElement || !["/", "?"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "/") this.commands.search();
    else this.commands.help();
  }
}
