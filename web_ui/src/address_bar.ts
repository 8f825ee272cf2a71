/** The fragment of the page's address, which follows the state of the page. */

export function writeAddress(fragment: string): void {
  history.replaceState(null, "", fragment === "" ? location.pathname + location.search : `#${fragment}`);
}

/** Delay a function until no new argument arrives for a moment: browsers limit the rate of address changes. */
export function later(call: (text: string) => void): (text: string) => void {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  return (text) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => call(text), 150);
  };
}
