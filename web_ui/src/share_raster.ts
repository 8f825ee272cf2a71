/** Mixes as pixels: an image with a few rows per mix and a pixel per column, stretched without blending. */

import type { TimeWindow } from "./mix.js";
import { COLUMN, eachBox, type Mix, type Share, sharesOf } from "./mix.js";

/** Maximum number of pixel rows of a mix. */
const MOST_ROWS = 64;
/** Distance by which a boundary moves before it changes its pixel row, so that equal shares give straight lines. */
const STEADY = 0.85;

export class ShareRaster {
  private readonly canvas = document.createElement("canvas");

  draw(context: CanvasRenderingContext2D, mixes: readonly Mix[], window: TimeWindow, ratio: number): void {
    const columns = Math.max(1, Math.ceil(window.width / COLUMN));
    const painted = mixes.length === 0 ? null : this.canvas.getContext("2d");
    if (painted === null) return;
    if (this.canvas.width < columns) this.canvas.width = columns;
    const rows = Math.min(Math.max(...mixes.map(({ height }) => Math.round(height * ratio)), 1), MOST_ROWS);
    if (this.canvas.height < rows * mixes.length) this.canvas.height = rows * mixes.length;
    const image = new ImageData(columns, rows * mixes.length);
    const pixels = new Uint32Array(image.data.buffer);
    mixes.forEach((mix, at) => {
      const steady = new Steady(rows);
      eachBox(sharesOf(mix, window), (share, column, top, bottom) => {
        const [red, green, blue] = share.rgb;
        const colour = (255 << 24) | (blue << 16) | (green << 8) | red;
        const [first, stop] = steady.rowsOf(share, top, bottom);
        for (let row = first; row < stop; row++) pixels[(rows * at + row) * columns + column] = colour;
      });
    });
    painted.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    mixes.forEach(({ top, height }, at) => {
      const width = columns * COLUMN; // the last column may reach beyond the window, which clips
      context.drawImage(this.canvas, 0, rows * at, columns, rows, window.left, top, width, height);
    });
  }
}

/** Rounds the boundaries of shares to rows, close to where they were in the column before. */
class Steady {
  private readonly before = new Map<Share, [number, number]>();

  constructor(private readonly rows: number) {}

  rowsOf(share: Share, top: number, bottom: number): [number, number] {
    const [above, below] = this.before.get(share) ?? [-1, -1];
    const rows: [number, number] = [this.round(top, above), this.round(bottom, below)];
    this.before.set(share, rows);
    return rows;
  }

  private round(share: number, before: number): number {
    const exact = share * this.rows;
    return Math.abs(exact - before) < STEADY ? before : Math.round(exact);
  }
}
