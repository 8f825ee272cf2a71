/** A scrollable part of a page; if it overflows, it accepts the keyboard's focus. */

import { make } from "./dom.js";

let observer: ResizeObserver | undefined;

/** Create a scrollable part around a table; `kind` is an additional class. */
export function scroller(label: string, table: HTMLTableElement, kind = ""): HTMLElement {
  const element = make("div", { class: `scroll ${kind}`.trim(), role: "group", "aria-label": label }, table);
  observer ??= new ResizeObserver((entries) => {
    for (const { target } of entries) follow(target instanceof HTMLTableElement ? target.parentElement : target);
  });
  observer.observe(element);
  observer.observe(table);
  return element;
}

function follow(element: Element | null): void {
  if (element === null) return;
  const scrolls = element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight;
  if (scrolls) element.setAttribute("tabindex", "0");
  else element.removeAttribute("tabindex");
}
