/** The page of a report, which contains its own data: `report_page` in pipeplan.drawing.html. */

import "./report.css";
import { later, writeAddress } from "../address_bar.js";
import type { Timeline } from "../index.js";
import type { ComparisonData, DifferenceData } from "../records.js";
import { ComparisonView } from "./comparison.js";
import { showDifference } from "./difference.js";
import { openerOf } from "./timelines.js";

function fill(): void {
  const holder = document.getElementById("pipeplan-data");
  const place = document.getElementById("pipeplan-report");
  if (holder === null || place === null) return;
  const data = JSON.parse(holder.textContent ?? "") as ComparisonData | DifferenceData;
  const fragment = location.hash === "" ? (place.dataset.begin ?? "") : location.hash;
  place.classList.add("pr-page");
  if (data.kind === "comparison") compare(place, data, fragment);
  else void difference(place, data, fragment);
}

async function difference(place: HTMLElement, data: DifferenceData, fragment: string): Promise<void> {
  const timeline = await showDifference(place, data, fragment, later(writeAddress));
  window.addEventListener("hashchange", () => timeline.setFragment(location.hash.slice(1)));
  keysTo(() => timeline);
}

function compare(place: HTMLElement, data: ComparisonData, fragment: string): void {
  const view = new ComparisonView(fragment, later(writeAddress));
  place.append(view.element);
  const open = openerOf(data.facts.rows, data.views);
  view.show({ comparison: data.facts, open, themes: data.themes });
  window.addEventListener("hashchange", () => view.setFragment(location.hash));
  keysTo(() => view.timelines.timeline);
}

/** Pass keys that no other element handles to the timeline. */
function keysTo(timeline: () => Timeline | null): void {
  document.addEventListener("keydown", (event) => {
    if (event.target === document.body) timeline()?.typed(event);
  });
}

fill();
