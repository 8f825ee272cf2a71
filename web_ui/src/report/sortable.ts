/** A table whose headings sort it, by click or key. */

import { make } from "../dom.js";

export interface Column<Key extends string> {
  readonly key: Key;
  /** Text of its heading. */
  readonly name: string;
  readonly help: string;
  /** A class of its cells. */
  readonly kind?: string;
}

export interface Order<Key extends string> {
  readonly key: Key;
  readonly descending: boolean;
}

/** Return the headings; `onSort` receives the new order after a click. */
export function headings<Key extends string>(
  columns: readonly Column<Key>[],
  order: Order<Key>,
  onSort: (order: Order<Key>) => void,
): HTMLTableCellElement[] {
  return columns.map(({ key, name, help, kind }) => {
    const sorted = key === order.key;
    const arrow = make(
      "span",
      { class: "arrow", "aria-hidden": "true" },
      sorted && order.descending ? "\u25bc" : "\u25b2",
    );
    const button = make("button", { type: "button", title: help, "data-focus": `sort ${key}` }, name, arrow);
    button.addEventListener("click", () => onSort({ key, descending: sorted && !order.descending }));
    const sort = order.descending ? "descending" : "ascending";
    return make("th", { scope: "col", class: kind ?? "", "aria-sort": sorted ? sort : "none" }, button);
  });
}

/** Replace the content of an element; the focus stays on the element with the same `data-focus`. */
export function refilled(element: HTMLElement, ...children: readonly Node[]): void {
  const focused = document.activeElement?.getAttribute("data-focus") ?? "";
  const within = element.contains(document.activeElement);
  element.replaceChildren(...children);
  if (within && focused !== "") element.querySelector<HTMLElement>(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
}
