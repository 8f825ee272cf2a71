/**
 * Bars as rows of pixels. A lane's picture is one row of pixels, stretched to the lane's height: every pixel is the mix of
 * the bars that fall into it, so a hundred thousand bars cost one pass over their times, and none is lost to rounding.
 */

import type { TimeWindow } from "./mix.js";
import type { Strip } from "./surface.js";

/** Minimum width in pixels of bars with a gap of a pixel after them. */
const ROOMY = 8;

/** Sums of colours for each pixel of a row, weighted by the share of the pixel that they cover. */
export class PixelRow {
  private readonly red: Float32Array;
  private readonly green: Float32Array;
  private readonly blue: Float32Array;
  private readonly cover: Float32Array;

  constructor(private readonly width: number) {
    this.red = new Float32Array(width);
    this.green = new Float32Array(width);
    this.blue = new Float32Array(width);
    this.cover = new Float32Array(width);
  }

  /** Add an interval from `from` to `to`, in pixels within the row. */
  add(from: number, to: number, rgb: Float32Array, code: number): void {
    const first = Math.floor(from);
    const last = Math.min(Math.floor(to), this.width - 1);
    if (first >= last) {
      this.mix(Math.min(first, last), to - from, rgb, code);
      return;
    }
    this.mix(first, first + 1 - from, rgb, code);
    for (let x = first + 1; x < last; x++) {
      this.red[x] = rgb[3 * code];
      this.green[x] = rgb[3 * code + 1];
      this.blue[x] = rgb[3 * code + 2];
      this.cover[x] = 1;
    }
    this.mix(last, to - last, rgb, code);
  }

  /** Write the row as RGBA and start over. */
  write(pixels: Uint8ClampedArray, at: number): void {
    const { red, green, blue, cover } = this;
    for (let x = 0; x < this.width; x++) {
      const share = cover[x];
      if (share === 0) continue;
      const pixel = at + 4 * x;
      pixels[pixel] = red[x] / share;
      pixels[pixel + 1] = green[x] / share;
      pixels[pixel + 2] = blue[x] / share;
      pixels[pixel + 3] = 255 * Math.min(share, 1);
    }
    for (const sums of [red, green, blue, cover]) sums.fill(0);
  }

  private mix(pixel: number, share: number, rgb: Float32Array, code: number): void {
    this.red[pixel] += share * rgb[3 * code];
    this.green[pixel] += share * rgb[3 * code + 1];
    this.blue[pixel] += share * rgb[3 * code + 2];
    this.cover[pixel] += share;
  }
}

/** Rows of pixels for strips, reused between pictures of the same width. */
export class Raster {
  private readonly canvas = document.createElement("canvas");
  private row = new PixelRow(0);
  private image: ImageData | null = null;

  /** Draw strips; the context's unit is a CSS pixel, which has `ratio` device pixels. */
  draw(context: CanvasRenderingContext2D, strips: readonly Strip[], window: TimeWindow, ratio: number): void {
    const width = Math.round(window.width * ratio);
    if (strips.length === 0 || width < 1) return;
    this.size(width, strips.length);
    const own = this.canvas.getContext("2d");
    if (own === null) return;
    const image = this.blank(width, strips.length);
    strips.forEach((strip, at) => {
      addVisible(this.row, strip, window, ratio, width);
      this.row.write(image.data, 4 * width * at);
    });
    own.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    strips.forEach((strip, at) => {
      context.drawImage(this.canvas, 0, at, width, 1, window.left, strip.top, window.width, strip.height);
    });
  }

  /** Transparent pixels; the same memory again where the size is the same. */
  private blank(width: number, height: number): ImageData {
    if (this.image?.width !== width || this.image.height !== height) this.image = new ImageData(width, height);
    else this.image.data.fill(0);
    return this.image;
  }

  private size(width: number, height: number): void {
    if (this.canvas.width !== width) {
      this.canvas.width = width;
      this.row = new PixelRow(width);
    }
    if (this.canvas.height < height) this.canvas.height = height;
  }
}

/** Add the visible bars of a strip to a row of `width` pixels. */
export function addVisible(row: PixelRow, strip: Strip, window: TimeWindow, ratio: number, width: number): void {
  const { start, end, code } = strip.track;
  const { rgb } = strip.palette;
  const scale = window.scale * ratio;
  const [first, stop] = strip.track.between(window.from, window.from + window.width / window.scale);
  for (let at = first; at < stop; at++) {
    const from = (start[at] - window.from) * scale;
    let to = (end[at] - window.from) * scale;
    to -= separation(to - from) * ratio;
    if (to > 0 && from < width) row.add(Math.max(from, 0), Math.min(to, width), rgb, code[at]);
  }
}

/** Return the width of the gap at a bar's end, which separates equal neighbours; the narrowest bars touch. */
export function separation(width: number): number {
  return Math.min(1, Math.max(0, (width - 2) / ROOMY));
}
