/** Entries of the browser's history: one for each change of the form or of an edited text. */

/** State of an entry: its query, and the edited text, which may be too long for an address. */
export interface Entry {
  readonly query: string;
  readonly rows: string | null;
}

/** Milliseconds within which changes of the same parameter are one entry, such as those of a dragged slider. */
const MERGE = 1000;
/** Maximum number of characters of a text that the history keeps. */
const MOST_KEPT = 500_000;

export class Trail {
  private current: Entry | null = null;
  private last = { names: "", at: Number.NEGATIVE_INFINITY };

  constructor(private readonly history: Pick<History, "pushState" | "replaceState">) {}

  /** Continue at an entry that the browser or a link has opened. */
  restored(entry: Entry): void {
    this.current = entry;
    this.last = { names: "", at: Number.NEGATIVE_INFINITY };
  }

  /** Write an address: as a new entry if its query or text changed, else into the current one. `now` is in milliseconds. */
  write(entry: Entry, fragment: string, now: number): void {
    const address = `?${entry.query}${fragment === "" ? "" : `#${fragment}`}`;
    const state = entry.rows === null || entry.rows.length > MOST_KEPT ? null : { rows: entry.rows };
    const names = this.current === null ? "" : changedNames(this.current, entry).join();
    const joins = names === "" || (names === this.last.names && now - this.last.at < MERGE);
    if (joins) this.history.replaceState(state, "", address);
    else this.history.pushState(state, "", address);
    this.current = entry;
    if (names !== "") this.last = { names, at: now };
  }
}

/** Return the names of the parameters that differ. */
export function changedNames(before: Entry, after: Entry): string[] {
  const [one, other] = [new URLSearchParams(before.query), new URLSearchParams(after.query)];
  const names = [...new Set([...one.keys(), ...other.keys()])].filter((name) => one.get(name) !== other.get(name));
  return before.rows === after.rows ? names : [...new Set([...names, "rows"])];
}

/** Return the edited text of an entry of the history. */
export function rowsOf(state: unknown): string | null {
  const rows = (state as { readonly rows?: unknown } | null)?.rows;
  return typeof rows === "string" ? rows : null;
}
