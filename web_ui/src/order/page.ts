/**
 * A page whose order can be edited and sent as a link: the fragment of its address holds the whole order, and the page
 * computes the times. Any page with a timeline that can be edited shows the order of any link.
 */

import { writeAddress } from "../address_bar.js";
import type { ThemeJson, TimelineData, ViewJson } from "../data.js";
import { button, make } from "../dom.js";
import type { Editing } from "../editing.js";
import { download } from "../export.js";
import { change, timeText } from "../format.js";
import type { Timeline } from "../timeline.js";
import { encode, LONGEST_LINK } from "./coding.js";
import { moved, type Order, orderOf } from "./order.js";
import { type Run, simulate } from "./simulate.js";
import { viewOfOrder } from "./view.js";

/** Name of the order in a fragment. */
const KEY = "order";
const MOST_STEPS = 500;
/** End of the title of an edited order. */
const EDITED = ", edited";
/** Maximum number of stopped ranks in a sentence. */
const MOST_STOPS = 2;

/** Return the text of the order of a fragment; null for a fragment without one. */
export function orderIn(fragment: string): string | null {
  return new URLSearchParams(fragment.replace(/^#/, "")).get(KEY);
}

/** Return the fragment of an order, without the state of its view. */
export async function fragmentOf(order: Order): Promise<string> {
  return `${KEY}=${await encode(order)}`;
}

/** Return the data of an order, in the colours of a page that was written for another one; or for `of`, with these ops. */
export function dataOf(order: Order, run: Run, themes: TimelineData["themes"], of?: ViewJson): TimelineData {
  const shades = order.chunks * order.copies;
  const own = (byShades: Record<string, ThemeJson>) => ({
    ...byShades,
    [shades]: byShades[shades] ?? spread(byShades, shades),
  });
  return { views: [viewOfOrder(order, run, of)], themes: { light: own(themes.light), dark: own(themes.dark) } };
}

/** Return a theme with more shades than any that the page has: the nearest ones of the richest. */
function spread(byShades: Record<string, ThemeJson>, shades: number): ThemeJson {
  const most = Math.max(...Object.keys(byShades).map(Number));
  const theme = byShades[most];
  const nearest = (colours: readonly string[]) =>
    Array.from({ length: shades }, (_, at) => colours[Math.floor((at * colours.length) / shades)]);
  const kinds = Object.entries(theme.kinds).map(([name, { title, fill, ink }]) => [
    name,
    { title, fill: nearest(fill), ink: nearest(ink) },
  ]);
  return { ...theme, kinds: Object.fromEntries(kinds) };
}

/** Return the effect of the edits as a sentence. */
export function verdict(order: Order, run: Run, original: Run): string {
  const ops = order.rows.reduce((sum, row) => sum + row.length, 0);
  if (run.stops.length > 0) {
    const stops = run.stops.slice(0, MOST_STOPS).map(({ rank, op, waitsFor, later }) => {
      return `rank ${rank} stops before ${op}, which waits for ${waitsFor}${later ? " later on this rank" : ""}`;
    });
    const left = run.stops.length - MOST_STOPS;
    const more = left > 0 ? `; ${left} more ${left === 1 ? "rank stops" : "ranks stop"}` : "";
    return `Deadlock after ${run.ran} of ${ops} ops: ${stops.join("; ")}${more}.`;
  }
  if (original.stops.length > 0) return `It runs: makespan ${timeText(run.until, order.unit)}.`;
  const by = run.until / original.until - 1;
  const compared =
    Math.abs(by) < 1e-9 ? "as before" : `${change(by)} against ${timeText(original.until, order.unit)} before`;
  return `It runs: makespan ${timeText(run.until, order.unit)}, ${compared}.`;
}

export class OrderPage {
  readonly element = make("div", { class: "pp-order", role: "toolbar", "aria-label": "editing of the order" });
  private readonly edit = button("Edit order", "move ops by dragging them, or with alt and left or right", () =>
    this.setEditing(!this.editing),
  );
  private readonly undo = button("Undo", "undo (ctrl+z)", () => this.go(-1));
  private readonly redo = button("Redo", "redo (ctrl+shift+z)", () => this.go(1));
  private readonly reset = button("Reset", "restore the order of the page", () => this.restart());
  private readonly copy = button("Copy link", "copy a link to this order", () => void this.copyLink());
  private readonly save = button("Save page", "save this page with this order as a file", () => void this.savePage());
  private readonly status = make("span", { class: "pp-order-text", role: "status" });
  private timeline: Timeline | null = null;
  private editing = false;
  private steps: Order[];
  private at = 0;
  private run: Run;
  private readonly original: Run;
  /** Whether the order is another one than that of the page's own data. */
  private readonly linked: boolean;
  private state = "";
  private text = "";

  private constructor(
    private readonly data: TimelineData,
    order: Order,
    linked: boolean,
    private readonly source: string,
  ) {
    this.linked = linked;
    this.steps = [order];
    this.run = simulate(order);
    this.original = this.run;
    const steps = make("span", { class: "pp-group" }, this.undo, this.redo, this.reset);
    this.element.append(this.edit, steps, this.copy, this.save, this.status);
    document.addEventListener("keydown", (event) => this.typed(event));
    this.follow();
  }

  /** Return the page of an order from a link, or of its own data; null if these cannot be edited. */
  static of(data: TimelineData, linked: Order | null, source: string): OrderPage | null {
    const own = data.views.length === 1 ? orderOf(data.views[0]) : null;
    const order = linked ?? own;
    return order === null ? null : new OrderPage(data, order, linked !== null, source);
  }

  /** Data of the timeline at the beginning. */
  get begun(): TimelineData {
    return this.linked ? dataOf(this.order, this.run, this.data.themes) : this.data;
  }

  attach(timeline: Timeline): void {
    this.timeline = timeline;
    this.state = timeline.fragment;
    if (this.linked) void this.write();
  }

  /** Show a sentence next to the buttons. */
  say(text: string): void {
    this.status.textContent = text;
  }

  /** Follow the state of the view, which is a part of the fragment. */
  stateChanged(fragment: string): void {
    this.state = fragment;
    writeAddress([this.text, fragment].filter(Boolean).join("&"));
  }

  private get order(): Order {
    return this.steps[this.at];
  }

  private setEditing(on: boolean): void {
    this.editing = on;
    this.edit.setAttribute("aria-pressed", String(on));
    const editing: Editing = {
      moved: ({ op, to }) => this.add(moved(this.order, op.rank, op.index, to)),
    };
    this.timeline?.edit(on ? editing : null);
    if (on && this.at === 0) this.say("Drag an op along its rank, or select one and press alt with left or right.");
    this.follow();
  }

  private add(order: Order): void {
    this.steps.length = this.at + 1;
    const first = order === this.steps[0];
    this.steps.push(first ? order : { ...order, title: edited(order.title) });
    if (this.steps.length > MOST_STEPS) this.steps.shift();
    this.at = this.steps.length - 1;
    this.show();
  }

  private go(by: number): void {
    const at = this.at + by;
    if (at < 0 || at >= this.steps.length) return;
    this.at = at;
    this.show();
  }

  private restart(): void {
    if (this.at > 0) this.add(this.steps[0]);
  }

  private show(): void {
    this.run = simulate(this.order);
    const own = this.linked ? undefined : this.data.views[0];
    const data = dataOf(this.order, this.run, this.data.themes, own);
    const [view] = data.views;
    const until = this.run.stops.length > 0 ? this.run.until : null;
    view.judged = { until, wrong: [], lit: -1 };
    this.timeline?.update(data);
    this.say(verdict(this.order, this.run, this.original));
    this.follow();
    void this.write();
  }

  private follow(): void {
    this.undo.disabled = this.at === 0;
    this.redo.disabled = this.at === this.steps.length - 1;
    this.reset.disabled = this.at === 0;
    for (const own of [this.undo, this.redo, this.reset]) own.hidden = !this.editing && this.steps.length === 1;
  }

  /** Write the order to the address; return whether it is short enough for a link. */
  private async write(): Promise<boolean> {
    const { order } = this;
    const text = await fragmentOf(order);
    if (order !== this.order) return this.write();
    const short = text.length <= LONGEST_LINK;
    this.text = short ? text : "";
    writeAddress([this.text, this.state].filter(Boolean).join("&"));
    if (!short) this.say(`${this.status.textContent ?? ""} ${tooLong(text.length)}`.trim());
    return short;
  }

  private async copyLink(): Promise<void> {
    if (!(await this.write())) return;
    const copied = await navigator.clipboard?.writeText(location.href).then(
      () => true,
      () => false,
    );
    const size = `${location.href.length.toLocaleString("en")} characters`;
    if (!copied) this.say(`The address of this page is the link (${size}): copy it from there.`);
    else if (location.protocol === "file:") this.say(`Copied (${size}). It opens with a copy of this file: send both.`);
    else this.say(`Copied (${size}).`);
  }

  /** Save the page as it was written, with the current order as its data. */
  private async savePage(): Promise<void> {
    const data = { order: await encode(this.order), themes: this.data.themes };
    const text = JSON.stringify(data).replace(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);
    const page = this.source.replace(
      /(<script type="application\/json" id="pipeplan-data">)[^<]*/,
      (_, tag: string) => `${tag}${text}`,
    );
    download(
      new Blob([page], { type: "text/html" }),
      `${this.order.title.replace(/[^\w.-]+/g, "_").slice(0, 60)}.html`,
    );
    this.say("Saved: the file needs no network, and shows this order wherever it is opened.");
  }

  private typed(event: KeyboardEvent): void {
    const key = event.key.toLowerCase();
    if (!this.editing || !(event.ctrlKey || event.metaKey) || !["z", "y"].includes(key)) return;
    if (event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    this.go(key === "y" || event.shiftKey ? 1 : -1);
  }
}

function edited(title: string): string {
  return title.endsWith(EDITED) ? title : `${title}${EDITED}`;
}

function tooLong(length: number): string {
  return `This order is too long for a link (${length.toLocaleString("en")} characters, and programs truncate those above ${LONGEST_LINK.toLocaleString("en")}): save the page instead.`;
}
