/** Drawing on a canvas, in CSS pixels. */

import { FONT } from "./frame.js";
import type { Mix, TimeWindow } from "./mix.js";
import { Raster } from "./raster.js";
import { ShareRaster } from "./share_raster.js";
import type { Label, Strip, Surface, TextStyle } from "./surface.js";

export class CanvasSurface implements Surface {
  private readonly context: CanvasRenderingContext2D;
  private readonly raster = new Raster();
  private readonly shares = new ShareRaster();
  private readonly widths = new Map<string, number>();
  ratio = 1;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("this browser cannot draw on a canvas");
    this.context = context;
  }

  /** Start a new picture of this size, empty and transparent. */
  begin(width: number, height: number, ratio: number): void {
    const pixels = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (this.canvas.width !== pixels[0] || this.canvas.height !== pixels[1]) {
      [this.canvas.width, this.canvas.height] = pixels;
    }
    this.ratio = ratio;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.context.textBaseline = "middle";
  }

  rect(x: number, y: number, width: number, height: number, fill: string, opacity = 1): void {
    this.context.globalAlpha = opacity;
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
    this.context.globalAlpha = 1;
  }

  outline(x: number, y: number, width: number, height: number, stroke: string, thickness: number): void {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = thickness;
    this.context.setLineDash([]);
    this.context.strokeRect(x + thickness / 2, y + thickness / 2, width - thickness, height - thickness);
  }

  line(points: readonly number[], stroke: string, thickness: number, dash: readonly number[] = []): void {
    const { context } = this;
    context.strokeStyle = stroke;
    context.lineWidth = thickness;
    context.setLineDash([...dash]);
    context.beginPath();
    context.moveTo(points[0], points[1]);
    for (let at = 2; at < points.length; at += 2) context.lineTo(points[at], points[at + 1]);
    context.stroke();
  }

  text(text: string, x: number, y: number, style: TextStyle): void {
    this.context.font = fontOf(style.size, style.bold);
    this.context.textAlign = style.align ?? "left";
    this.context.fillStyle = style.fill;
    this.context.fillText(text, x, y);
  }

  labels(labels: readonly Label[], size: number): void {
    this.context.font = fontOf(size);
    this.context.textAlign = "center";
    let ink = "";
    for (const label of labels) {
      if (label.ink !== ink) this.context.fillStyle = ink = label.ink;
      this.context.fillText(label.text, label.x, label.y);
    }
  }

  strips(strips: readonly Strip[], window: TimeWindow): void {
    this.raster.draw(this.context, strips, window, this.ratio);
  }

  mixes(mixes: readonly Mix[], window: TimeWindow): void {
    this.shares.draw(this.context, mixes, window, this.ratio);
  }

  clipped(x: number, y: number, width: number, height: number, draw: () => void): void {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }

  textWidth(text: string, size: number, bold = false): number {
    const font = fontOf(size, bold);
    const key = `${font}|${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      this.context.font = font;
      width = this.context.measureText(text).width;
      if (this.widths.size > 20_000) this.widths.clear();
      this.widths.set(key, width);
    }
    return width;
  }
}

export function fontOf(size: number, bold = false): string {
  return `${bold ? "600 " : ""}${size}px ${FONT}`;
}
