/** Small plots, frames, and a surface that records its drawing calls. */

import { scaleLinear } from "d3-scale";
import type { TimelineData, ViewJson } from "../src/data.js";
import { type Frame, RIGHT } from "../src/frame.js";
import { AXIS, layOut } from "../src/layout.js";
import { Theme } from "../src/palette.js";
import { Part } from "../src/part.js";
import { Plot } from "../src/plot.js";
import { INITIAL, type State } from "../src/state.js";
import type { Label, Surface, TextStyle } from "../src/surface.js";

export const KINDS = ["F", "B", "SEND_F", "RECV_F", "OFFLOAD", "RELOAD", "UNSHARD"];

const BESIDE: Record<string, number> = {
  OFFLOAD: Part.TO_HOST,
  RELOAD: Part.FROM_HOST,
  UNSHARD: Part.COLLECTIVE,
};

/** An op as a row: lane, start, end, kind, microbatch; its stage is the last number, by default its lane. */
export type Op = readonly [lane: number, start: number, end: number, kind: string, microbatch: number, stage?: number];

/** Two stages and two microbatches under 1F1B: F takes 1 and B 2. */
export const TWO_BY_TWO: readonly Op[] = [
  [0, 0, 1, "F", 0],
  [0, 1, 2, "F", 1],
  [0, 4, 6, "B", 0],
  [0, 7, 9, "B", 1],
  [1, 1, 2, "F", 0],
  [1, 2, 4, "B", 0],
  [1, 4, 5, "F", 1],
  [1, 5, 7, "B", 1],
];

/** Dependencies of the ops of TWO_BY_TWO, by their indices. */
export const TWO_BY_TWO_LINKS: readonly (readonly [number, number])[] = [
  [0, 4],
  [1, 6],
  [5, 2],
  [7, 3],
];

export function viewOf(
  ops: readonly Op[],
  change: Partial<ViewJson> = {},
  links: readonly (readonly [number, number])[] = [],
): ViewJson {
  const lanes = Math.max(...ops.map(([lane]) => lane)) + 1;
  const same = (value: number) => ops.map(() => value);
  const ends = ops.map(([, , end]) => end);
  return {
    version: 1,
    title: "made",
    unit: "ms",
    source: "simulated",
    makespan: Math.max(...ends),
    idle_over_total: 0.25,
    chunks: 1,
    copies: 1,
    kinds: KINDS,
    parts: ["full", "upper", "lower", "strip", "to_host", "from_host", "collective"],
    waits: ["data"],
    lanes: {
      label: Array.from({ length: lanes }, (_, lane) => `rank ${lane}`),
      first_start: Array.from({ length: lanes }, () => 0),
      last_end: Array.from({ length: lanes }, () => Math.max(...ends)),
      work: Array.from({ length: lanes }, () => 6),
    },
    bars: {
      lane: ops.map(([lane]) => lane),
      start: ops.map(([, start]) => start),
      end: ends,
      part: ops.map(([, , , kind]) => BESIDE[kind] ?? (kind.includes("_") ? Part.STRIP : Part.FULL)),
      kind: ops.map(([, , , kind]) => KINDS.indexOf(kind)),
      chunk: same(0),
      copy: same(0),
      stage: ops.map(([lane, , , , , stage]) => stage ?? lane),
      microbatch: ops.map(([, , , , microbatch]) => microbatch),
      slice: same(0),
      group: same(-1),
    },
    links: {
      source: links.map(([source]) => source),
      target: links.map(([, target]) => target),
      why: links.map(() => 0),
    },
    memory: null,
    gaps: null,
    ...change,
  };
}

export function plotOf(
  ops: readonly Op[],
  change: Partial<ViewJson> = {},
  links: readonly (readonly [number, number])[] = [],
  index = 0,
): Plot {
  return new Plot(viewOf(ops, change, links), index);
}

const THEME = {
  name: "light",
  page: "#ffffff",
  lane: "#eeeeee",
  grid: "#cccccc",
  text: "#000000",
  faint: "#888888",
  limit: "#ff0000",
  kinds: {
    F: { title: "forward", fill: ["#0000ff"], ink: ["#ffffff"] },
    B: { title: "backward", fill: ["#00ff00"], ink: ["#000000"] },
    SEND_F: { title: "send forward", fill: ["#111111"], ink: ["#ffffff"] },
    RECV_F: { title: "receive forward", fill: ["#222222"], ink: ["#ffffff"] },
    OFFLOAD: { title: "offload to the host", fill: ["#333333"], ink: ["#ffffff"] },
    RELOAD: { title: "reload from the host", fill: ["#444444"], ink: ["#ffffff"] },
    UNSHARD: { title: "unshard", fill: ["#555555"], ink: ["#ffffff"] },
  },
  reasons: { warmup: { title: "warm-up", fill: "#aa0000" } },
  curves: ["#010101", "#020202", "#030303", "#040404"],
} as const;

export const THEMES: TimelineData["themes"] = { light: { "1": THEME, "2": THEME }, dark: { "1": THEME } };

export function themeOf(plots: readonly Plot[]): Theme {
  return new Theme({ views: [], themes: THEMES }, "light", plots);
}

/** Return a frame with a visible range of time, or all, `width` pixels wide; lanes begin at 100. */
export function frameOf(plots: readonly Plot[], width = 1000, change: Partial<State> = {}, height = 400): Frame {
  const state = { ...INITIAL, ...change };
  const content = layOut(plots, state, height - AXIS);
  const last = Math.max(...plots.map((plot) => plot.view.makespan));
  const x = scaleLinear(state.span ?? [0, last], [100, width - RIGHT]);
  return { plots, visible: plots, theme: themeOf(plots), state, content, width, height, left: 100, scroll: 0, x };
}

/** Surface whose characters are all half as wide as their font size. */
export class Recorder implements Surface {
  readonly ratio = 1;
  readonly texts: string[] = [];
  readonly labelled: Label[] = [];
  readonly lines: { points: readonly number[]; stroke: string; dash: readonly number[] }[] = [];
  readonly rects: { x: number; y: number; width: number; height: number; fill: string }[] = [];
  readonly outlines: { x: number; width: number; stroke: string }[] = [];

  rect(x: number, y: number, width: number, height: number, fill: string): void {
    this.rects.push({ x, y, width, height, fill });
  }

  outline(x: number, _y: number, width: number, _height: number, stroke: string): void {
    this.outlines.push({ x, width, stroke });
  }

  line(points: readonly number[], stroke: string, _thickness: number, dash: readonly number[] = []): void {
    this.lines.push({ points: [...points], stroke, dash });
  }

  text(text: string, _x: number, _y: number, _style: TextStyle): void {
    this.texts.push(text);
  }

  labels(labels: readonly Label[]): void {
    this.labelled.push(...labels);
  }

  strips(): void {}

  mixes(): void {}

  clipped(_x: number, _y: number, _width: number, _height: number, draw: () => void): void {
    draw();
  }

  textWidth(text: string, size: number): number {
    return 0.5 * size * text.length;
  }
}
