/** The colours of a timeline: of each theme, by a plot's colour codes, and by the ratio of measured to planned times. */

import { type Column, floats, type ScaleJson, type ThemeJson, type ThemeName, type TimelineData } from "./data.js";
import { change } from "./format.js";
import type { Plot } from "./plot.js";

/** A theme's colours in the order of a plot's colour codes. */
export class Palette {
  /** Red, green and blue of each code, 0 to 255. */
  readonly rgb: Float32Array;

  constructor(
    readonly fill: readonly string[],
    readonly ink: readonly string[],
  ) {
    this.rgb = new Float32Array(3 * fill.length);
    fill.forEach((colour, code) => {
      for (let part = 0; part < 3; part++) {
        this.rgb[3 * code + part] = Number.parseInt(colour.slice(1 + 2 * part, 3 + 2 * part), 16);
      }
    });
  }
}

/** Steps from the middle of the scale to either end. */
const STEPS = 16;
/** Colour code of an op without a ratio. */
const NONE = 2 * STEPS + 1;
/** Minimum reach of the scale: differences of a per cent or two are noise. */
const LEAST_REACH = 1.05;
/** Share of the ratios that lie within the scale; the others have the colours of its ends. */
const WITHIN = 0.98;

/** Colours from blue over grey to orange, which are distinguishable with any colour vision; grey differs from an idle lane. */
const COLOURS: Record<ThemeName, { low: string; middle: string; high: string; none: string }> = {
  light: { low: "#0b5394", middle: "#d0d5dc", high: "#b8400e", none: "#f4f5f7" },
  dark: { low: "#6fb7ff", middle: "#474f59", high: "#ff9d57", none: "#1d2126" },
};

/** Colours of ops by a ratio instead of by their kind, such as measured over planned time. */
export class Shading {
  readonly title: string;
  readonly ends: readonly [string, string];
  /** Ratio at the upper end of the scale; the lower end is its reciprocal. */
  readonly reach: number;
  private readonly values: readonly (Float64Array | null)[];

  constructor(scale: ScaleJson) {
    this.title = scale.title;
    this.ends = scale.ends;
    this.values = scale.values.map((column: Column | null) => (column === null ? null : floats(column)));
    this.reach = scale.reach ?? reachOf(this.values);
  }

  /** Return whether the palette colours a view. */
  colours(view: number): boolean {
    return (this.values[view] ?? null) !== null;
  }

  /** Return the ratio of an op, or null if it has none. */
  valueOf(view: number, bar: number): number | null {
    const value = this.values[view]?.[bar] ?? 0;
    return value > 0 ? value : null;
  }

  /** Return the text of a ratio: `1.12 (+12.0%)`. */
  text(value: number): string {
    return `${value.toFixed(2)} (${change(value - 1)})`;
  }

  /** Return the colour code of each op of a view. */
  codes(view: number, bars: number): Uint16Array {
    const size = Math.log(this.reach);
    return Uint16Array.from({ length: bars }, (_, bar) => {
      const value = this.valueOf(view, bar);
      if (value === null) return NONE;
      const share = Math.min(Math.max(Math.log(value) / size, -1), 1);
      return Math.round(STEPS * (1 + share));
    });
  }

  palette(theme: ThemeName): Palette {
    const fills = [...Array(NONE).keys()].map((code) => fillOf(COLOURS[theme], code / STEPS - 1));
    fills.push(COLOURS[theme].none);
    return new Palette(fills, fills.map(inkOn));
  }

  /** Return the colours from one end of the scale to the other. */
  ramp(theme: ThemeName, count: number): string[] {
    return [...Array(count).keys()].map((at) => fillOf(COLOURS[theme], (2 * at) / (count - 1) - 1));
  }
}

/** Return the distance from 1, up or down, within which most ratios lie. */
function reachOf(values: readonly (Float64Array | null)[]): number {
  const away = values.flatMap((column) =>
    [...(column ?? [])]
      .filter((value) => value > 0)
      .map(Math.log)
      .map(Math.abs),
  );
  if (away.length === 0) return LEAST_REACH;
  const sorted = Float64Array.from(away).sort();
  return Math.max(LEAST_REACH, Math.exp(sorted[Math.floor(WITHIN * (sorted.length - 1))]));
}

function fillOf({ low, middle, high }: (typeof COLOURS)[ThemeName], share: number): string {
  return mixed(middle, share < 0 ? low : high, Math.abs(share));
}

function mixed(one: string, other: string, share: number): string {
  const parts = [1, 3, 5].map((at) => {
    const [from, to] = [one, other].map((colour) => Number.parseInt(colour.slice(at, at + 2), 16));
    return Math.round(from + share * (to - from))
      .toString(16)
      .padStart(2, "0");
  });
  return `#${parts.join("")}`;
}

/** Return black or white, whichever has more contrast with a colour. */
function inkOn(fill: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => (Number.parseInt(fill.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000000" : "#ffffff";
}

/** One theme for all plots: each plot has its own number of shades per kind. */
export class Theme {
  /** Colours of page, lines and text, and the legend's shades, which are those of the plot with the most shades. */
  readonly base: ThemeJson;
  readonly bars: readonly Palette[];
  readonly gaps: readonly Palette[];
  private readonly themes: Record<string, ThemeJson>;

  /** `shading` replaces the colours of the plots with ratios. */
  constructor(
    data: TimelineData,
    readonly name: ThemeName,
    plots: readonly Plot[],
    readonly shading: Shading | null = null,
  ) {
    const themes = data.themes[name];
    this.themes = themes;
    this.base = this.withShades(Math.max(...plots.map((plot) => plot.shades)));
    this.bars = plots.map((plot) =>
      shading?.colours(plot.index) === true ? shading.palette(name) : barPalette(plot, themes[String(plot.shades)]),
    );
    this.gaps = plots.map((plot) => gapPalette(plot, this.base));
  }

  /** Return the theme with a number of shades per kind. */
  withShades(count: number): ThemeJson {
    return this.themes[String(count)];
  }
}

function barPalette(plot: Plot, theme: ThemeJson): Palette {
  const kinds = plot.view.kinds.map((kind) => theme.kinds[kind]);
  return new Palette(
    kinds.flatMap((kind) => kind.fill),
    kinds.flatMap((kind) => kind.ink),
  );
}

function gapPalette(plot: Plot, theme: ThemeJson): Palette {
  const fills = (plot.gaps?.reasons ?? []).map((reason) => theme.reasons[reason]?.fill ?? theme.faint);
  return new Palette(fills, fills);
}
