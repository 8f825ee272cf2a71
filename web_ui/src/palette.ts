/** A theme's colours in the order of a plot's colour codes. */

import type { ThemeJson, ThemeName, TimelineData } from "./data.js";
import type { Plot } from "./plot.js";
import type { Shading } from "./shading.js";

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

/** One theme for all plots: each has as many shades a kind as it needs. */
export class Theme {
  /** Page, lines, text, and the legend's shades: those of the plot that has most. */
  readonly base: ThemeJson;
  readonly bars: readonly Palette[];
  readonly gaps: readonly Palette[];
  private readonly themes: Record<string, ThemeJson>;

  /** `shading`: of the plots that it has numbers for. */
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

  /** The theme with so many shades a kind. */
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
