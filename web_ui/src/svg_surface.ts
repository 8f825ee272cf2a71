/** Drawing as SVG text: bars are one path a colour, so that the file stays small and can be edited. */

import { FONT } from "./frame.js";
import type { TimeWindow } from "./mix.js";
import { COLUMN, eachBox, type Mix, sharesOf } from "./mix.js";
import { separation } from "./raster.js";
import type { Label, Strip, Surface, TextStyle } from "./surface.js";

/** Width in pixels below which bars are merged. */
const FINEST = 0.6;

export class SvgSurface implements Surface {
  /** Vector lines stay sharp at any size, but details below half a pixel are invisible. */
  readonly ratio = 2;
  private readonly parts: string[] = [];
  private clips = 0;

  /** `measure` returns the width of a text. */
  constructor(private readonly measure: Surface["textWidth"]) {}

  /** Return the whole file. */
  finish(width: number, height: number, title: string): string {
    const size = `width="${round(width)}" height="${round(height)}" viewBox="0 0 ${round(width)} ${round(height)}"`;
    const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="${escaped(FONT)}">`;
    return `${head}\n<title>${escaped(title)}</title>\n${this.parts.join("\n")}\n</svg>\n`;
  }

  rect(x: number, y: number, width: number, height: number, fill: string, opacity = 1): void {
    const alpha = opacity < 1 ? ` fill-opacity="${round(opacity)}"` : "";
    this.parts.push(`<rect ${box(x, y, width, height)} fill="${fill}"${alpha}/>`);
  }

  outline(x: number, y: number, width: number, height: number, stroke: string, thickness: number): void {
    const half = thickness / 2;
    const inner = box(x + half, y + half, Math.max(width - thickness, 0), Math.max(height - thickness, 0));
    this.parts.push(`<rect ${inner} fill="none" stroke="${stroke}" stroke-width="${thickness}"/>`);
  }

  line(points: readonly number[], stroke: string, thickness: number, dash: readonly number[] = []): void {
    const dashes = dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    const places = points.map(round).join(" ");
    this.parts.push(
      `<polyline points="${places}" fill="none" stroke="${stroke}" stroke-width="${thickness}"${dashes}/>`,
    );
  }

  text(text: string, x: number, y: number, style: TextStyle): void {
    const anchor = { left: "start", center: "middle", right: "end" }[style.align ?? "left"];
    const weight = style.bold ? ' font-weight="600"' : "";
    const look = `font-size="${style.size}" fill="${style.fill}" text-anchor="${anchor}"${weight}`;
    this.parts.push(`<text x="${round(x)}" y="${round(y + 0.35 * style.size)}" ${look}>${escaped(text)}</text>`);
  }

  labels(labels: readonly Label[], size: number): void {
    for (const label of labels) this.text(label.text, label.x, label.y, { fill: label.ink, size, align: "center" });
  }

  strips(strips: readonly Strip[], window: TimeWindow): void {
    const paths = new Map<string, string[]>();
    for (const strip of strips) addStrip(paths, strip, window);
    for (const [fill, path] of paths) this.parts.push(`<path d="${path.join("")}" fill="${fill}"/>`);
  }

  mixes(mixes: readonly Mix[], window: TimeWindow): void {
    const paths = new Map<string, string[]>();
    for (const mix of mixes) addMix(paths, mix, window);
    for (const [fill, path] of paths) this.parts.push(`<path d="${path.join("")}" fill="${fill}"/>`);
  }

  clipped(x: number, y: number, width: number, height: number, draw: () => void): void {
    const id = `clip${this.clips++}`;
    this.parts.push(`<clipPath id="${id}"><rect ${box(x, y, width, height)}/></clipPath><g clip-path="url(#${id})">`);
    draw();
    this.parts.push("</g>");
  }

  textWidth(text: string, size: number, bold = false): number {
    return this.measure(text, size, bold);
  }
}

/** Add a strip's rectangles to the paths of their colours; too narrow rectangles merge with their neighbours. */
function addStrip(paths: Map<string, string[]>, strip: Strip, window: TimeWindow): void {
  const { start, end, code } = strip.track;
  const [first, stop] = strip.track.between(window.from, window.from + window.width / window.scale);
  const pixel = (time: number) =>
    window.left + Math.min(Math.max((time - window.from) * window.scale, 0), window.width);
  for (let at = first; at < stop; at++) {
    const from = pixel(start[at]);
    let to = pixel(end[at]);
    const fill = strip.palette.fill[code[at]];
    if (to - from < FINEST) {
      while (at + 1 < stop && pixel(end[at + 1]) - from < FINEST) at++;
      to = pixel(end[at]);
    } else to -= separation(to - from);
    const path = paths.get(fill) ?? [];
    path.push(`M${round(from)} ${round(strip.top)}H${round(to)}v${round(strip.height)}H${round(from)}z`);
    paths.set(fill, path);
  }
}

/** Add the rectangles of a mix to the paths of their colours. */
function addMix(paths: Map<string, string[]>, mix: Mix, window: TimeWindow): void {
  eachBox(sharesOf(mix, window), ({ fill }, column, top, bottom) => {
    const x = window.left + column * COLUMN;
    const width = Math.min(COLUMN, window.left + window.width - x);
    const path = paths.get(fill) ?? [];
    const [y, height] = [mix.top + top * mix.height, (bottom - top) * mix.height];
    path.push(`M${round(x)} ${round(y)}h${round(width)}v${round(height)}h${round(-width)}z`);
    paths.set(fill, path);
  });
}

function box(x: number, y: number, width: number, height: number): string {
  return `x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}"`;
}

function round(value: number): string {
  return String(Math.round(100 * value) / 100);
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function escaped(text: string): string {
  return text.replace(/(?![\t\n\r])[\p{Cc}\ufffe\uffff]/gu, "\ufffd").replace(/[&<>"']/g, (sign) => ENTITIES[sign]);
}
