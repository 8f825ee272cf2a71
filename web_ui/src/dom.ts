/** Creation of elements. Text is always inserted as text, so that titles and names are never parsed as HTML. */

type Child = Node | string;
type Attributes = Readonly<Record<string, string | number | boolean>>;

/** Create an element with attributes (`true` for an empty one, `false` for none) and children. */
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

/** Call a function with the files that are dropped anywhere on the page. */
export function onDrop(handle: (files: readonly File[]) => Promise<void>): void {
  const over = (on: boolean) => document.body.classList.toggle("dragging", on);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget === null && over(false));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    void handle([...(event.dataTransfer?.files ?? [])]);
  });
}

/** Create a button with a short label; `title` is its longer name, with its key. */
export function button(text: string, title: string, clicked: () => void): HTMLButtonElement {
  const element = make("button", { type: "button", title });
  rename(element, text);
  element.addEventListener("click", clicked);
  return element;
}

/** Change the label of a button. Its accessible name contains the label, so that speech control finds the button. */
export function rename(element: HTMLButtonElement, text: string): void {
  const { title } = element;
  const named = !/\p{L}/u.test(text) || title.toLowerCase().includes(text.toLowerCase());
  element.textContent = text;
  element.setAttribute("aria-label", named ? title : `${text}: ${title}`);
}

/** Return an element that the page has from the start. */
export function part(selector: string): HTMLElement {
  const element = document.querySelector<HTMLElement>(selector);
  if (element === null) throw new Error(`the page has no ${selector}`);
  return element;
}
