/** Thumbnails of timelines: the server's small bitmaps in the colours of the page. */

import { make } from "../dom.js";
import type { Thumbnail } from "../records.js";
import { inflated } from "../report/archive.js";

/** Create a canvas with a thumbnail, which appears once it is decoded; screen readers have the figures beside it. */
export function thumbnailOf(thumbnail: Thumbnail): HTMLCanvasElement {
  const canvas = make("canvas", {
    class: "thumbnail",
    "aria-hidden": "true",
    width: thumbnail.width,
    height: thumbnail.height,
  });
  void draw(canvas, thumbnail);
  return canvas;
}

async function draw(canvas: HTMLCanvasElement, { width, height, kinds, cells }: Thumbnail): Promise<void> {
  const codes = await inflated(Uint8Array.from(atob(cells), (letter) => letter.charCodeAt(0)));
  const context = canvas.getContext("2d");
  if (context === null) return;
  const style = getComputedStyle(document.documentElement);
  const colours = kinds.map((kind) => rgb(style.getPropertyValue(`--kind-${kind}`)));
  const image = new ImageData(width, height);
  codes.forEach((code, at) => {
    if (code > 0) image.data.set(colours[code - 1], 4 * at);
  });
  context.putImageData(image, 0, 0);
}

/** Return red, green, blue and opacity of a colour such as `#1f5fc4`; transparent if it is none. */
function rgb(colour: string): readonly [number, number, number, number] {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colour.trim());
  if (match === null) return [0, 0, 0, 0];
  const [red, green, blue] = match.slice(1).map((part) => Number.parseInt(part, 16));
  return [red, green, blue, 255];
}
