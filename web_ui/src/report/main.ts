/** The page of a report, which holds its own data: `report_page` in pipeplan.drawing.html. */

import "./report.css";
import type { ViewJson } from "../data.js";
import { opened } from "./archive.js";
import { ComparisonView } from "./comparison.js";
import type { ComparisonData, ReportData } from "./contract.js";

function fill(): void {
  const holder = document.getElementById("pipeplan-data");
  const place = document.getElementById("pipeplan-report");
  if (holder === null || place === null) return;
  const data = JSON.parse(holder.textContent ?? "") as ReportData;
  const fragment = location.hash === "" ? (place.dataset.begin ?? "") : location.hash;
  compare(place, data, fragment);
}

function compare(place: HTMLElement, data: ComparisonData, fragment: string): void {
  const view = new ComparisonView(fragment, later(writeAddress));
  place.classList.add("pr-page");
  place.append(view.element);
  const known = new Map<string, Promise<ViewJson>>();
  const open = (name: string): Promise<ViewJson> => {
    const at = data.facts.rows.findIndex(({ schedule }) => schedule === name);
    const found = known.get(name) ?? opened(data.views[at]);
    known.set(name, found);
    return found;
  };
  view.show({ comparison: data.facts, open, themes: data.themes });
  window.addEventListener("hashchange", () => view.setFragment(location.hash));
  document.addEventListener("keydown", (event) => {
    if (event.target === document.body) view.drawn.timeline?.typed(event);
  });
}

function writeAddress(fragment: string): void {
  history.replaceState(null, "", fragment === "" ? location.pathname + location.search : `#${fragment}`);
}

/** Call with the latest argument once nothing has come for a moment: browsers refuse too many changes of the address. */
function later(call: (text: string) => void): (text: string) => void {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  return (text) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => call(text), 150);
  };
}

fill();
