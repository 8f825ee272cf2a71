/** The list of keys and gestures, as a dialog. */

import { button, make } from "./dom.js";

type Keys = readonly (readonly [string, string])[];

const GROUPS: readonly (readonly [string, Keys])[] = [
  [
    "Move",
    [
      ["W S", "zoom in and out at the pointer; hold to continue"],
      ["A D", "move earlier and later; hold to continue"],
      ["ctrl + wheel, pinch", "zoom at the pointer"],
      ["wheel", "scroll or zoom, as set by the switch above (Z)"],
      ["shift + wheel, sideways", "move in time"],
      ["drag", "move in time, and up and down"],
      ["+ \u2212 0", "zoom in, zoom out, show everything"],
      ["page up, page down", "scroll up and down"],
      ["[ ], alt + wheel", "lower and higher lanes"],
    ],
  ],
  [
    "Ops",
    [
      ["\u2190 \u2192", "the previous and the next op on the rank"],
      ["\u2191 \u2193", "the op on the rank above or below at that time"],
      ["home, end", "the first and the last op of the rank"],
      ["enter, click", "highlight the ops that delayed this op, and the ops that it delays"],
      ["F", "zoom to the measured interval, or to the op"],
      ["/", "find an op; enter, N and shift + N go through the matches"],
      ["escape", "clear selection, matches and measurement"],
    ],
  ],
  [
    "Measure",
    [
      ["shift + drag", "measure an interval on some ranks: time by kind and by reason for idling"],
      ["drag", "the same while everything is visible; its edges can be dragged"],
      ["M, shift + M", "measure the interval of the op; extend the interval to the op"],
    ],
  ],
  [
    "Show",
    [
      ["G", "why ranks idle"],
      ["B", "memory"],
      ["C", "the critical path"],
      ["O", "overlay the schedules"],
      ["T", "light, dark, or the system's setting"],
      ["V", "ratios instead of kinds, if available"],
    ],
  ],
  [
    "Touch",
    [
      ["one finger", "move"],
      ["two fingers", "zoom"],
      ["tap", "select an op"],
      ["hold, then slide", "describe the op under the finger"],
    ],
  ],
];

const EDITING: Keys = [
  ["drag an op", "move it along its rank"],
  ["alt + \u2190 \u2192", "move the focused op one place"],
];

export class Help {
  readonly element = make("dialog", { class: "pp-help", "aria-label": "keys and gestures" });

  open(editing: boolean): void {
    if (this.element.open) return;
    const groups = editing ? [...GROUPS, ["Edit", EDITING] as const] : GROUPS;
    const close = button("Close", "close (escape)", () => this.element.close());
    const head = make("div", { class: "pp-help-head" }, make("h2", {}, "Keys and gestures"), close);
    this.element.replaceChildren(head, make("div", { class: "pp-help-groups" }, ...groups.map(groupOf)));
    this.element.showModal();
  }
}

function groupOf([title, keys]: readonly [string, Keys]): HTMLElement {
  const rows = keys.flatMap(([key, does]) => [make("dt", {}, key), make("dd", {}, does)]);
  return make("section", {}, make("h3", {}, title), make("dl", {}, ...rows));
}
