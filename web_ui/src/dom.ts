/** Making elements. Text always goes in as text, so that no title or name is ever read as HTML. */

type Child = Node | string;
type Attributes = Readonly<Record<string, string | number | boolean>>;

/** An element with attributes (`true` for an empty one, `false` for none) and children. */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/** Take the files that are dropped anywhere on the page. */
export function onDrop(take: (files: readonly File[]) => Promise<void>): void {
  const over = (on: boolean) => document.body.classList.toggle("dragging", on);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget === null && over(false));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    void take([...(event.dataTransfer?.files ?? [])]);
  });
}

/** A button with a word on it; `title` is its longer name, with its key. */
export function button(text: string, title: string, clicked: () => void): HTMLButtonElement {
  const element = make("button", { type: "button", title });
  rename(element, text);
  element.addEventListener("click", clicked);
  return element;
}

/** Put another word on a button; whoever says that word to a machine finds it in its longer name. */
export function rename(element: HTMLButtonElement, text: string): void {
  const { title } = element;
  const told = !/\p{L}/u.test(text) || title.toLowerCase().includes(text.toLowerCase());
  element.textContent = text;
  element.setAttribute("aria-label", told ? title : `${text}: ${title}`);
}

/** A part that the page has from the start. */
export function part(selector: string): HTMLElement {
  const found = document.querySelector<HTMLElement>(selector);
  if (found === null) throw new Error(`the page has no ${selector}`);
  return found;
}
