/**
 * The timeline of pipeplan: `mountTimeline(element, data)` on any page. A page that contains its own data, as
 * `pipeplan ... -o x.html` writes it, is filled as soon as this script runs.
 */

import "./style.css";
import { later, writeAddress } from "./address_bar.js";
import type { TimelineData } from "./data.js";
import { decode } from "./order/coding.js";
import { costsOf, orderOf } from "./order/order.js";
import { dataOf, fragmentOf, OrderPage, orderIn } from "./order/page.js";
import { simulate } from "./order/simulate.js";
import { Timeline, type TimelineOptions } from "./timeline.js";

export type { TimelineData } from "./data.js";
export type { Editing, Move, PlacedOp } from "./editing.js";
export type { State } from "./state.js";
export type { Timeline, TimelineOptions } from "./timeline.js";

/** Fill an element with a timeline of the data that `timeline_data` in pipeplan.drawing.html returns. */
export function mountTimeline(element: HTMLElement, data: TimelineData, options: TimelineOptions = {}): Timeline {
  return new Timeline(element, data, options);
}

/** Return the fragment with which a page of its own shows the order of a timeline; null if no page can compute its times. */
export async function orderFragment(data: TimelineData): Promise<string | null> {
  const order = data.views.length === 1 ? orderOf(data.views[0]) : null;
  return order === null ? null : fragmentOf(order);
}

/** Data of a page: a timeline, or the text of an order of which the page makes one. */
type PageData = TimelineData | { readonly order: string; readonly themes: TimelineData["themes"] };

/** Mount the timeline of a page that contains its own data, with its state in the page's address. */
export let embedded: Timeline | null = null;

async function mountEmbedded(): Promise<void> {
  const holder = document.getElementById("pipeplan-data");
  const place = document.getElementById("pipeplan-timeline");
  if (holder === null || place === null) return;
  // The page as it was written, before anything is drawn: what "Save page" writes again.
  const source = `<!doctype html>\n${document.documentElement.outerHTML}`;
  const written = JSON.parse(holder.textContent ?? "") as PageData;
  const data = "views" in written ? written : await saved(written);
  let complaint = "";
  const text = orderIn(location.hash);
  const linked =
    text === null
      ? null
      : await decode(text).catch((error: Error) => {
          complaint = `${error.message} This is the page's own schedule.`;
          return null;
        });
  const page = OrderPage.of(data, linked, source);
  const fragment = location.hash === "" ? (place.dataset.begin ?? "") : location.hash;
  embedded = mountTimeline(place, page?.begun ?? data, {
    fragment,
    onFragment: later((state) => (page === null ? writeAddress(state) : page.stateChanged(state))),
    ...(page === null ? {} : { above: page.element }),
  });
  page?.attach(embedded);
  if (complaint !== "") page?.say(complaint);
  document.addEventListener("keydown", (event) => {
    if (event.target === document.body) embedded?.typed(event);
  });
  window.addEventListener("hashchange", () => {
    if (orderIn(location.hash) !== text) location.reload();
    else embedded?.setFragment(location.hash.slice(1));
  });
}

/** Return the data of a page that was saved with an edited order. */
async function saved({
  order: text,
  themes,
}: {
  order: string;
  themes: TimelineData["themes"];
}): Promise<TimelineData> {
  const order = await decode(text);
  const data = dataOf(order, simulate(order), themes);
  return { ...data, views: [{ ...data.views[0], order: costsOf(order) }] };
}

void mountEmbedded();
