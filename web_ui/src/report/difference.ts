/** The page of a run and its plan: the results in sentences, each kind of op, and both timelines coloured by their ratio. */

import type { ScaleJson, ThemeName } from "../data.js";
import { make } from "../dom.js";
import { Times } from "../format.js";
import type { mountTimeline, Timeline } from "../index.js";
import { Plot } from "../plot.js";
import type { DifferenceData, DifferenceFacts } from "../records.js";
import { fromFragment } from "../state.js";
import { opened } from "./archive.js";
import { DifferenceTable } from "./difference_table.js";
import { OpPair } from "./op_pair.js";

/** The timeline's own script, which every page with a timeline loads. */
declare const pipeplan: { readonly mountTimeline: typeof mountTimeline };

/** Fill a page; `moved` is called with the state for its address after each change. */
export async function showDifference(
  place: HTMLElement,
  data: DifferenceData,
  fragment: string,
  moved: (fragment: string) => void,
): Promise<Timeline> {
  const { facts } = data;
  const host = make("div", { class: "pr-timeline" });
  const below = make("div");
  const table = new DifferenceTable(facts, (notation) => find(notation));
  place.append(
    make("p", { class: "pr-headline" }, facts.sentences[0]),
    ...(facts.of === "" ? [] : [make("p", { class: "pr-costs" }, facts.of)]),
    make("div", { class: "pr-above pr-summary" }, sentencesOf(facts), make("div", {}, table.element, legendOf(facts))),
    below,
    host,
  );
  table.show();
  const views = await Promise.all(data.views.map(opened));
  const pair = new OpPair(new Plot(views[0], 0), new Plot(views[1], 1));
  below.append(pair.element);
  let timeline: Timeline | null = null;
  const find = (notation: string): void => {
    const same = timeline !== null && fromFragment(timeline.fragment).query === notation;
    timeline?.set({ query: same ? "" : notation });
  };
  timeline = pipeplan.mountTimeline(
    host,
    { views, themes: data.themes, scale: scaleOf(facts) },
    {
      fragment,
      onFragment: (text) => {
        table.show({ selected: fromFragment(text).query });
        moved(text);
      },
      onSelect: (op) => pair.show(op),
    },
  );
  pair.show(fromFragment(fragment).op);
  const themed = () => table.show({ theme: host.dataset.theme === "dark" ? "dark" : ("light" satisfies ThemeName) });
  new MutationObserver(themed).observe(host, { attributeFilter: ["data-theme"] });
  themed();
  return timeline;
}

function scaleOf({ ratios, reach }: DifferenceFacts): ScaleJson {
  return { title: "measured / planned", ends: ["shorter", "longer"], reach, values: [...ratios] };
}

function sentencesOf({ sentences, notes }: DifferenceFacts): HTMLElement {
  const [, ...others] = sentences;
  return make(
    "section",
    { "aria-label": "result" },
    make("ul", { class: "pr-sentences" }, ...others.map((text) => make("li", {}, ...withCommand(text)))),
    ...notes.map((note) => make("p", { class: "pr-costs" }, note)),
  );
}

/** Return a sentence with its command in code style. */
function withCommand(text: string): (Node | string)[] {
  const at = text.indexOf(": pipeplan ");
  return at < 0 ? [text] : [text.slice(0, at + 2), make("code", {}, text.slice(at + 2))];
}

function legendOf(facts: DifferenceFacts): HTMLElement {
  const times = Times.of(
    facts.ranks.flatMap(({ busy_planned, busy_measured, idle_planned, idle_measured }) => [
      busy_planned,
      busy_measured,
      idle_planned,
      idle_measured,
    ]),
    facts.unit,
  );
  const unit = times.unit === "" ? "" : `, ${times.unit}`;
  const names = ["rank", `busy planned${unit}`, "measured", `idle planned${unit}`, "measured"];
  const head = make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)));
  const rows = facts.ranks.map((rank) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, String(rank.rank)),
      ...[rank.busy_planned, rank.busy_measured, rank.idle_planned, rank.idle_measured].map((value) =>
        make("td", {}, times.number(value)),
      ),
    ),
  );
  const ranks = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  return make(
    "div",
    { class: "pr-notes" },
    make("p", {}, facts.legend),
    make(
      "details",
      {},
      make("summary", {}, "By rank"),
      make("div", { class: "pr-table pr-ranks", tabindex: 0, role: "region", "aria-label": "ranks" }, ranks),
    ),
  );
}
