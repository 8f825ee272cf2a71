/** The timelines, and their colours for the rest of the page. */

import type { mountTimeline, Timeline, TimelineData } from "../index.js";

/** The timeline's own script, which every page with a timeline loads. */
declare const pipeplan: { readonly mountTimeline: typeof mountTimeline };

export class Picture {
  readonly element = document.createElement("div");
  /** Null until the first data is shown. */
  timeline: Timeline | null = null;
  private data: TimelineData | null = null;
  private coloured: "light" | "dark" | null = null;

  constructor(
    private start: string,
    private readonly moved: () => void,
    private readonly recoloured: () => void = () => undefined,
  ) {
    this.element.className = "timeline";
    // The timeline sets its theme as an attribute of its element, and the page follows.
    new MutationObserver(() => this.colour()).observe(this.element, { attributeFilter: ["data-theme"] });
  }

  show(data: TimelineData | null): void {
    this.element.hidden = data === null;
    if (data === null) return;
    this.data = data;
    if (this.timeline === null) {
      const options = { fragment: this.start, onFragment: () => this.moved() };
      this.timeline = pipeplan.mountTimeline(this.element, data, options);
    } else this.timeline.update(data);
    this.colour();
  }

  /** Visible part of the timelines, as the fragment of an address. */
  get fragment(): string {
    return this.timeline?.fragment ?? this.start;
  }

  set fragment(fragment: string) {
    if (this.timeline === null) this.start = fragment;
    else this.timeline.setFragment(fragment);
  }

  /** Give the page the colours of kinds and reasons. */
  private colour(): void {
    const name = this.element.dataset.theme === "dark" ? "dark" : "light";
    const theme = Object.values(this.data?.themes[name] ?? {})[0];
    if (theme === undefined) return;
    const before = this.coloured;
    this.coloured = name;
    const style = document.documentElement.style;
    for (const [key, reason] of Object.entries(theme.reasons)) style.setProperty(`--reason-${key}`, reason.fill);
    for (const [key, kind] of Object.entries(theme.kinds)) style.setProperty(`--kind-${key}`, kind.fill[0] ?? "");
    if (before !== name) this.recoloured();
  }
}
