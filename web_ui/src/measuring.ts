/** Measuring on a timeline: the dragged band, its tooltip, and the table below. */

import { edgeOf, newBand, rowsOf } from "./band.js";
import type { Description } from "./describe.js";
import type { Frame } from "./frame.js";
import type { Drag, Point } from "./grabs.js";
import { measured } from "./measure.js";
import { type MeasureActions, MeasurePanel, summaryOf, titleOf } from "./measure_panel.js";
import type { BarRef } from "./search.js";
import type { Band } from "./state.js";

export interface MeasuringHandlers extends MeasureActions {
  frame(): Frame;
  /** Return the band of the state. */
  band(): Band | null;
  choose(band: Band): void;
  /** Called after the dragged band changes. */
  changed(): void;
  showTooltip(description: Description, x: number, y: number): void;
  hideTooltip(): void;
}

export class Measuring {
  readonly panel: MeasurePanel;
  /** The band during a drag. */
  dragged: Band | null = null;

  constructor(private readonly handlers: MeasuringHandlers) {
    this.panel = new MeasurePanel(handlers);
  }

  /** Return a drag that begins a band. */
  begin(point: Point): Drag | null {
    return newBand(this.handlers.frame(), point, this.own);
  }

  /** Return a drag of the edge of the band under the point, or null. */
  resume(point: Point): Drag | null {
    return edgeOf(this.handlers.frame(), this.handlers.band(), point, this.own);
  }

  /** Measure the interval of an op on all ranks of its view; with `grown`, extend the current band. */
  mark({ view, bar }: BarRef, grown: boolean): void {
    const plot = this.handlers.frame().plots[view];
    const before = grown ? this.handlers.band() : null;
    this.handlers.choose({
      from: Math.min(plot.start[bar], before?.from ?? Number.POSITIVE_INFINITY),
      to: Math.max(plot.end[bar], before?.to ?? 0),
      first: { view, lane: 0 },
      last: { view, lane: plot.lanes - 1 },
    });
  }

  /** Show the table of the state's band, or hide it without a band. */
  follow(frame: Frame): void {
    const band = this.handlers.band();
    const rows = band === null ? [] : rowsOf(frame.content, band);
    if (band === null || rows.length === 0) this.panel.hide();
    else this.panel.show(measured(rows, band, frame.theme), band.from, band.to, frame.theme);
  }

  private readonly own = {
    frame: (): Frame => this.handlers.frame(),
    show: (band: Band | null): void => this.drag(band),
    done: (band: Band): void => this.handlers.choose(band),
  };

  private drag(band: Band | null): void {
    this.dragged = band;
    this.handlers.changed();
    if (band === null) {
      this.handlers.hideTooltip();
      return;
    }
    const frame = this.handlers.frame();
    const measurement = measured(rowsOf(frame.content, band), band, frame.theme);
    const title = titleOf(measurement, band.from, band.to);
    this.handlers.showTooltip(
      { title, kind: "", fill: "", facts: summaryOf(measurement) },
      frame.x(band.to),
      bottomOf(frame, band),
    );
  }
}

function bottomOf(frame: Frame, band: Band): number {
  const rows = rowsOf(frame.content, band);
  return Math.min(Math.max(...rows.map((row) => row.top + row.height - frame.scroll + 26)), frame.height);
}
