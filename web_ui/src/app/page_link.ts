/** The address of the page and its entries in the browser's history: reads and writes the state of the page. */

import { NEEDS } from "../needs.js";
import { fromQuery, PARAMETERS, type PageState, presetIn, toQuery } from "./address.js";
import { preset } from "./api.js";
import type { Field } from "./fields.js";
import { Notices } from "./notices.js";
import { rowsOf, Trail } from "./trail.js";
import { type KnownNames, unknownNames } from "./unknown_names.js";
import { type Typed, typedOf } from "./values.js";

/** Milliseconds without a change before the address is written: browsers limit the rate of changes. */
const QUIET = 250;
/** Themes of the timeline and the page. */
const THEMES = ["auto", "light", "dark"];

/** Names that a link can contain, beside those of the fields. */
export interface Names {
  readonly presets: readonly string[];
  readonly schedules: readonly string[];
  readonly panels: readonly string[];
}

/** Everything that the address and the history hold. */
export interface Addressed {
  readonly state: PageState;
  /** Parameters of the open panel. */
  readonly more: Readonly<Record<string, string>>;
  /** Edited text; null if nothing is edited. */
  readonly rows: string | null;
  /** Visible part of the timelines. */
  readonly fragment: string;
}

export class PageLink {
  readonly notices = new Notices((address) => {
    history.pushState(null, "", address);
    this.opened();
  });
  /** Texts of the form with the chosen preset. */
  base: Typed = {};
  private readonly trail = new Trail(history);
  private waiting: ReturnType<typeof setTimeout> | undefined;

  /** `opened` is called after the browser, or a notice, opens another entry. */
  constructor(
    private readonly fields: readonly Field[],
    private readonly names: () => Names,
    private readonly current: () => Addressed,
    private readonly opened: () => void,
  ) {
    window.addEventListener("popstate", () => opened());
  }

  /** Return the state of the current entry, without unknown names, and its edited text; null if another entry is opened meanwhile. */
  async read(): Promise<Pick<Addressed, "state" | "rows"> | null> {
    clearTimeout(this.waiting);
    const { search, hash } = location;
    const { fields } = this;
    const names = this.names();
    const name = presetIn(search);
    const base = names.presets.includes(name) ? typedOf((await preset(name)).settings, fields) : {};
    if (search !== location.search) return null;
    this.base = base;
    const unknown = unknownNames(search, hash.slice(1), this.known(names));
    this.notices.show(unknown);
    const known = (text: string) => !unknown.some((one) => one.name === text);
    const state = fromQuery(search, fields, base);
    const choices = new Set(fields.filter(({ kind }) => kind === "choice").map((field) => field.name));
    const typed = Object.entries(state.typed).filter(([field, text]) => !choices.has(field) || known(text));
    const rows = rowsOf(history.state) ?? new URLSearchParams(search).get("rows");
    return { state: { ...state, typed: Object.fromEntries(typed), visible: state.visible.filter(known) }, rows };
  }

  /** Continue with the entry whose state the page has now. */
  restored(): void {
    this.trail.restored(this.entry());
  }

  /** Write the address after a moment without changes. */
  later(): void {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.write(), QUIET);
  }

  write(): void {
    clearTimeout(this.waiting);
    this.trail.write(this.entry(), this.current().fragment, performance.now());
  }

  private entry(): { readonly query: string; readonly rows: string | null } {
    const { state, more, rows } = this.current();
    return { query: toQuery(state, more, this.base), rows };
  }

  private known({ presets, schedules, panels }: Names): KnownNames {
    const choices = this.fields.filter(({ kind }) => kind === "choice");
    return {
      parameters: [...PARAMETERS, ...this.fields.map(({ name }) => name)],
      query: {
        preset: presets,
        schedules,
        show: schedules,
        allow: NEEDS,
        open: panels,
        ...Object.fromEntries(choices.map((field) => [field.name, field.choices] as const)),
      },
      fragment: { theme: THEMES },
    };
  }
}
