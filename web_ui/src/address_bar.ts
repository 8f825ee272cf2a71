/** The part of the page's address after the #, which is rewritten while a reader moves. */

export function writeAddress(fragment: string): void {
  history.replaceState(null, "", fragment === "" ? location.pathname + location.search : `#${fragment}`);
}

/** Call with the latest argument once nothing has come for a moment: browsers refuse too many changes of the address. */
export function later(call: (text: string) => void): (text: string) => void {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  return (text) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => call(text), 150);
  };
}
