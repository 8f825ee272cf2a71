/** The timelines of the selected schedules below the table; each is decoded when it is first needed. */

import type { TimelineData, ViewJson } from "../data.js";
import { make } from "../dom.js";
import type { mountTimeline, Timeline } from "../index.js";
import { fromFragment } from "../state.js";
import { opened } from "./archive.js";

/** The timeline's own script, which every page with a timeline loads. */
declare const pipeplan: { readonly mountTimeline: typeof mountTimeline };

/** Function that decodes the timeline of a schedule. */
export type Opener = (name: string) => Promise<ViewJson>;

/** Return a function that decodes each timeline once, by its schedule's name; `views` are in the order of the rows. */
export function openerOf(rows: readonly { readonly schedule: string }[], views: readonly string[]): Opener {
  const cache = new Map<string, Promise<ViewJson>>();
  return (name) => {
    const view = cache.get(name) ?? opened(views[rows.findIndex(({ schedule }) => schedule === name)]);
    cache.set(name, view);
    return view;
  };
}

export class Timelines {
  readonly element = make("div", { class: "pr-drawn" });
  timeline: Timeline | null = null;
  private names: readonly string[] = [];
  private requests = 0;
  private readonly host = make("div", { class: "pr-timeline" });
  private readonly empty = make("p", { class: "pr-empty", hidden: true }, "Select a schedule to see its timeline.");
  private readonly error = make("p", { class: "pr-empty", role: "alert", hidden: true });

  /** `begin` is the initial fragment; `moved` is called after the visible part of the timelines changes. */
  constructor(
    private begin: string,
    private readonly moved: () => void,
  ) {
    this.element.append(this.empty, this.error, this.host);
  }

  /** Draw schedules from top to bottom; of several requests the last one counts. */
  async show(names: readonly string[], open: Opener, themes: TimelineData["themes"]): Promise<void> {
    this.requests += 1;
    const request = this.requests;
    this.empty.hidden = names.length > 0;
    this.host.hidden = names.length === 0;
    if (names.length === 0) return;
    try {
      const views = await Promise.all(names.map(open));
      if (request === this.requests) this.fill(names, { views, themes });
      this.error.hidden = true;
    } catch (error) {
      this.error.textContent = `Cannot open this timeline: ${error instanceof Error ? error.message : error}.`;
      this.error.hidden = false;
    }
  }

  /** Visible part of the timelines, as the fragment of an address. */
  get fragment(): string {
    return this.timeline?.fragment ?? this.begin;
  }

  set fragment(fragment: string) {
    if (this.timeline === null) this.begin = fragment;
    else this.timeline.setFragment(fragment);
  }

  private fill(names: readonly string[], data: TimelineData): void {
    const before = this.names;
    this.names = names;
    if (this.timeline === null) {
      this.timeline = pipeplan.mountTimeline(this.host, data, { fragment: this.begin, onFragment: () => this.moved() });
      return;
    }
    const { op } = fromFragment(this.timeline.fragment);
    this.timeline.update(data);
    if (op === null) return;
    // The selected op's timeline may have moved or disappeared.
    const view = names.indexOf(before[op.view] ?? "");
    if (view !== op.view) this.timeline.set({ op: view < 0 ? null : { view, name: op.name } });
  }
}
