/** Unknown names in a link, each with the nearest known one and the address that uses it. */

/** Names that a link can contain, by its parameters; `fragment` are those of its fragment. */
export interface KnownNames {
  readonly parameters: readonly string[];
  readonly query: Readonly<Record<string, readonly string[]>>;
  readonly fragment: Readonly<Record<string, readonly string[]>>;
}

export interface UnknownName {
  /** Kind of name: `schedule`, `preset`, `setting`. */
  readonly kind: string;
  readonly name: string;
  /** The most similar known name; null if none is similar. */
  readonly nearest: string | null;
  /** Query and fragment with the nearest name; without the unknown one if there is none. */
  readonly address: string;
}

/** Nouns of parameters whose names are not the noun. */
const KINDS: Readonly<Record<string, string>> = {
  schedules: "schedule",
  show: "schedule",
  allow: "need",
  open: "panel",
};

/** Maximum share of a name's letters that may differ from the suggested name. */
const DIFFERENT = 0.5;

export function unknownNames(query: string, fragment: string, known: KnownNames): UnknownName[] {
  const parts = new URLSearchParams(query);
  const ends = new URLSearchParams(fragment);
  const after = (change: (parts: URLSearchParams, ends: URLSearchParams) => void) => {
    const [one, other] = [new URLSearchParams(parts), new URLSearchParams(ends)];
    change(one, other);
    const text = other.toString().replaceAll("%2C", ",");
    return `?${one.toString().replaceAll("%2C", ",")}${text === "" ? "" : `#${text}`}`;
  };
  const settings = [...new Set(parts.keys())]
    .filter((name) => !known.parameters.includes(name))
    .map((name) => {
      const nearest = nearestOf(name, known.parameters);
      const address = after((one) => {
        const value = one.get(name) ?? "";
        one.delete(name);
        if (nearest !== null && !one.has(nearest)) one.set(nearest, value);
      });
      return { kind: "setting", name, nearest, address };
    });
  const values = (source: URLSearchParams, names: KnownNames["query"], at: 0 | 1) =>
    Object.entries(names).flatMap(([parameter, choices]) =>
      [...new Set((source.get(parameter) ?? "").split(","))]
        .filter((name) => name !== "" && !choices.includes(name))
        .map((name) => {
          const nearest = nearestOf(name, choices);
          const address = after((...both) => rename(both[at], parameter, name, nearest));
          return { kind: KINDS[parameter] ?? parameter, name, nearest, address };
        }),
    );
  const all = [...settings, ...values(parts, known.query, 0), ...values(ends, known.fragment, 1)];
  // A schedule may be both compared and shown: one repair serves both.
  return all.filter(({ kind, name }, at) => all.findIndex((one) => one.kind === kind && one.name === name) === at);
}

/** Replace a name wherever parameters of the same kind contain it. */
function rename(parts: URLSearchParams, parameter: string, name: string, nearest: string | null): void {
  const kind = KINDS[parameter] ?? parameter;
  for (const other of [...new Set(parts.keys())].filter((key) => (KINDS[key] ?? key) === kind)) {
    const names = (parts.get(other) ?? "").split(",").flatMap((one) => (one === name ? (nearest ?? []) : one));
    if (names.length > 0) parts.set(other, [...new Set(names)].join(","));
    else parts.delete(other);
  }
}

/** Return the most similar name: one that begins like it, else one with few different letters. */
export function nearestOf(name: string, names: readonly string[]): string | null {
  const text = name.toLowerCase();
  const longer = names.filter((known) => known.toLowerCase().startsWith(text));
  if (longer.length > 0) return longer.reduce((best, known) => (known.length < best.length ? known : best));
  const near = names.map((known) => ({ known, away: distance(text, known.toLowerCase()) }));
  const best = near.sort((one, other) => one.away - other.away)[0];
  return best !== undefined && best.away <= DIFFERENT * Math.max(text.length, 2) ? best.known : null;
}

/** Return the number of letters to insert, delete, replace or swap with the next one (the optimal string alignment). */
function distance(one: string, other: string): number {
  let before: readonly number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const swaps = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const aligned = row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, aligned, swaps ? before[j - 2] + 1 : aligned));
    }
    [before, row] = [row, next];
  }
  return row[other.length];
}
