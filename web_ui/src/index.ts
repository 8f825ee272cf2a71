/**
 * The timeline of pipeplan: `mountTimeline(element, data)` on any page. A page that contains its own data, as
 * `pipeplan ... -o x.html` writes it, is filled as soon as this script runs.
 */

import "./style.css";
import { later, writeAddress } from "./address_bar.js";
import type { TimelineData } from "./data.js";
import { Timeline, type TimelineOptions } from "./timeline.js";

export type { TimelineData } from "./data.js";
export type { Editing, Move, PlacedOp } from "./editing.js";
export type { State } from "./state.js";
export type { Timeline, TimelineOptions } from "./timeline.js";

/** Fill an element with a timeline of the data that `timeline_data` in pipeplan.drawing.html returns. */
export function mountTimeline(element: HTMLElement, data: TimelineData, options: TimelineOptions = {}): Timeline {
  return new Timeline(element, data, options);
}

/** Mount the timeline of a page that contains its own data, with its state in the page's address. */
export let embedded: Timeline | null = null;

function mountEmbedded(): void {
  const holder = document.getElementById("pipeplan-data");
  const place = document.getElementById("pipeplan-timeline");
  if (holder === null || place === null) return;
  const data = JSON.parse(holder.textContent ?? "") as TimelineData;
  const fragment = location.hash === "" ? (place.dataset.begin ?? "") : location.hash;
  embedded = mountTimeline(place, data, { fragment, onFragment: later(writeAddress) });
  document.addEventListener("keydown", (event) => {
    if (event.target === document.body) embedded?.typed(event);
  });
  window.addEventListener("hashchange", () => embedded?.setFragment(location.hash.slice(1)));
}

mountEmbedded();
