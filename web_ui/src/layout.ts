/** Vertical layout in CSS pixels of the content, which may be higher than its window. */

import type { Plot } from "./plot.js";
import type { State } from "./state.js";

export const AXIS = 26;
export const HEADER = 30;
const LOWEST_MEMORY = 40;
const MEMORY = 84;
const HIGHEST_MEMORY = 140;
export const MEMORY_HEADER = 22;
const MEMORY_SPACE = 4;
const SPACE = 12;
/** Share of a lane that stays free if plots are overlaid, so that related plots are close. */
const LANE_GAP = 0.14;
const LOWEST_LANE = 9;
/** Height of lanes below which curves have their minimum height. */
const READABLE_LANE = 18;
const HIGHEST_LANE = 42;

/** One lane of one plot. */
export interface Row {
  readonly plot: Plot;
  readonly lane: number;
  readonly top: number;
  readonly height: number;
}

/** A group of lanes under one title: one plot, or all of them overlaid. */
export interface Block {
  readonly plots: readonly Plot[];
  readonly top: number;
  readonly lanes: readonly { readonly label: string; readonly top: number; readonly height: number }[];
}

export interface MemoryPanel {
  readonly plot: Plot;
  readonly top: number;
  readonly height: number;
}

export interface Content {
  readonly rows: readonly Row[];
  /** The row of each lane of each plot. */
  readonly rowOf: ReadonlyMap<Plot, readonly Row[]>;
  readonly blocks: readonly Block[];
  readonly memories: readonly MemoryPanel[];
  readonly laneHeight: number;
  readonly height: number;
}

type Choice = Pick<State, "layout" | "memory" | "tall">;

/** Return the layout for a window of this height: lanes fill it, within limits. */
export function layOut(plots: readonly Plot[], choice: Choice, room: number): Content {
  const groups = groupsOf(plots, choice);
  const lanes = laneCount(groups);
  const most = Math.max(...groups.map((group) => group.length));
  const panels = memoryCount(groups, choice);
  const flexible = room - fixedHeight(groups, choice);
  const beside = (memory: number) => (flexible - panels * memory) / lanes;
  const readable = Math.min(beside(LOWEST_MEMORY), READABLE_LANE * most);
  const fitted = Math.min(Math.max(beside(MEMORY), readable), highestLane(most));
  const laneHeight = Math.floor(Math.max(fitted, LOWEST_LANE * most) * choice.tall);
  const left = panels > 0 ? Math.floor((flexible - lanes * laneHeight) / panels) : 0;
  const memoryHeight = Math.min(Math.max(left, LOWEST_MEMORY), HIGHEST_MEMORY);
  return new Stack(groups, choice, laneHeight, memoryHeight).content();
}

/** Return the height at which lanes have their comfortable height. */
export function comfortableHeight(plots: readonly Plot[], choice: Choice): number {
  const groups = groupsOf(plots, choice);
  const most = Math.max(...groups.map((group) => group.length));
  return fixedHeight(groups, choice) + memoryCount(groups, choice) * MEMORY + laneCount(groups) * highestLane(most);
}

/** Return whether plots can be overlaid: there are several, with the same lanes. */
export function canOverlay(plots: readonly Plot[]): boolean {
  const labels = new Set(plots.map((plot) => plot.view.lanes.label.join("\n")));
  return plots.length > 1 && labels.size === 1;
}

class Stack {
  private readonly rows: Row[] = [];
  private readonly blocks: Block[] = [];
  private readonly memories: MemoryPanel[] = [];
  private top = 0;

  constructor(
    private readonly groups: readonly (readonly Plot[])[],
    private readonly choice: Choice,
    private readonly laneHeight: number,
    private readonly memoryHeight: number,
  ) {}

  content(): Content {
    for (const group of this.groups) {
      this.addBlock(group);
      for (const plot of group) this.addMemory(plot);
      this.top += SPACE;
    }
    const { rows, blocks, memories, laneHeight, top } = this;
    const rowOf = new Map(this.groups.flat().map((plot) => [plot, rows.filter((row) => row.plot === plot)]));
    return { rows, rowOf, blocks, memories, laneHeight, height: top };
  }

  private addBlock(group: readonly Plot[]): void {
    const top = this.top;
    const labels = group[0].view.lanes.label;
    const first = top + HEADER;
    const gap = group.length > 1 ? LANE_GAP * this.laneHeight : 0;
    const part = (this.laneHeight - gap) / group.length;
    const lanes = labels.map((label, lane) => ({
      label,
      top: first + lane * this.laneHeight,
      height: this.laneHeight,
    }));
    lanes.forEach((place, lane) => {
      group.forEach((plot, at) => {
        this.rows.push({ plot, lane, top: place.top + gap / 2 + at * part, height: part });
      });
    });
    this.blocks.push({ plots: group, top, lanes });
    this.top = first + labels.length * this.laneHeight;
  }

  private addMemory(plot: Plot): void {
    if (plot.memory === null || !this.choice.memory) return;
    this.memories.push({ plot, top: this.top + MEMORY_HEADER, height: this.memoryHeight });
    this.top += MEMORY_HEADER + this.memoryHeight + MEMORY_SPACE;
  }
}

function groupsOf(plots: readonly Plot[], choice: Choice): readonly (readonly Plot[])[] {
  return choice.layout === "overlaid" && canOverlay(plots) ? [plots] : plots.map((plot) => [plot]);
}

function laneCount(groups: readonly (readonly Plot[])[]): number {
  return groups.reduce((sum, group) => sum + group[0].lanes, 0);
}

function highestLane(most: number): number {
  return Math.round(HIGHEST_LANE * (most > 1 ? 0.75 * most : 1));
}

function memoryCount(groups: readonly (readonly Plot[])[], choice: Choice): number {
  return choice.memory ? groups.flat().filter((plot) => plot.memory !== null).length : 0;
}

/** Return the height of everything except lanes and curves. */
function fixedHeight(groups: readonly (readonly Plot[])[], choice: Choice): number {
  return groups.length * (HEADER + SPACE) + memoryCount(groups, choice) * (MEMORY_HEADER + MEMORY_SPACE);
}
