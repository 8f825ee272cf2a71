/** Export of the visible part as a picture, with its legend below. */

import { CanvasSurface } from "./canvas_surface.js";
import { make } from "./dom.js";
import type { Frame } from "./frame.js";
import { drawHighlights, type Lit } from "./highlight.js";
import { drawLegend, FINE_NOTE, legendEntries } from "./legend.js";
import { anyTooFine, drawPicture } from "./picture.js";
import type { Surface } from "./surface.js";
import { SvgSurface } from "./svg_surface.js";

const MARGIN = 10;

/** Return the visible part as SVG text. */
export function svgOf(frame: Frame, lit: Lit): string {
  const measure = new CanvasSurface(make("canvas"));
  const surface = new SvgSurface((text, size, bold) => measure.textWidth(text, size, bold));
  const height = heightOf(measure, frame);
  drawPage(surface, frame, lit, height);
  return surface.finish(frame.width, height, titleOf(frame));
}

/** Return the visible part as a PNG file, with `ratio` pixels per CSS pixel. */
export function pngOf(frame: Frame, lit: Lit, ratio: number): Promise<Blob> {
  const canvas = make("canvas");
  const surface = new CanvasSurface(canvas);
  const height = heightOf(surface, frame);
  surface.begin(frame.width, height, ratio);
  drawPage(surface, frame, lit, height);
  return new Promise((resolve, reject) => {
    canvas.toBlob(
      (blob) => (blob === null ? reject(new Error("this browser cannot make a PNG")) : resolve(blob)),
      "image/png",
    );
  });
}

/** Download a file. */
export function download(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = make("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Return a file name made of a frame's titles, in characters that every system accepts. */
export function fileName(frame: Frame, ending: string): string {
  const words = titleOf(frame)
    .replace(/[^\p{L}\p{N}._-]+/gu, "_")
    .replace(/^[_.]+|_+$/g, "")
    .slice(0, 80);
  return `${words || "timeline"}.${ending}`;
}

export function titleOf(frame: Frame): string {
  return frame.visible.map((plot) => plot.view.title).join(", ");
}

function drawPage(surface: Surface, frame: Frame, lit: Lit, height: number): void {
  surface.rect(0, 0, frame.width, height, frame.theme.base.page);
  drawPicture(surface, frame);
  drawHighlights(surface, frame, { ...lit, lane: null, hovered: null, focused: null });
  legend(surface, frame);
}

function heightOf(surface: Surface, frame: Frame): number {
  return frame.height + legend(surface, frame) + 2 * MARGIN;
}

function legend(surface: Surface, frame: Frame): number {
  const entries = legendEntries(frame.visible, frame.theme, frame.state);
  if (anyTooFine(frame, surface.ratio)) entries.push({ fills: [], title: FINE_NOTE });
  const width = frame.width - frame.left - MARGIN;
  return drawLegend(surface, entries, frame.theme, frame.left, frame.height + MARGIN, width);
}
