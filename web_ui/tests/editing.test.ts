import { describe, expect, test } from "vitest";
import { type Editing, type Ghost, markAt, opsOfRank, placeAt, placedOp, step } from "../src/editing.js";
import type { Hit } from "../src/hit.js";
import { dragOf } from "../src/moving.js";
import { frameOf, plotOf, TWO_BY_TWO } from "./fixtures.js";

const plot = plotOf(TWO_BY_TWO);

describe("positions on a rank", () => {
  test("are those of the schedule's order", () => {
    expect(opsOfRank(plot, 1)).toEqual([4, 5, 6, 7]);
    expect(placedOp(plot, 6)).toEqual({ view: 0, name: "1F1", rank: 1, index: 2, bar: 6 });
  });

  test.each([
    [0.2, 0],
    [1.7, 1],
    [4.5, 1],
    [5.5, 2],
    [100, 3],
  ])("at time %d it is place %d for the first op of rank 0", (time, place) => {
    expect(placeAt(plot, placedOp(plot, 0), time)).toBe(place);
  });

  test("have a mark before the op that would follow, or at the end", () => {
    const op = placedOp(plot, 0);
    expect([0, 1, 2, 3].map((to) => markAt(plot, { op, to }))).toEqual([1, 4, 7, 9]);
  });

  test("change by one per key, within the ends", () => {
    expect(step(plot, 5, 1)).toEqual({ op: placedOp(plot, 5), to: 2 });
    expect(step(plot, 4, -1)).toBeNull();
    expect(step(plot, 7, 1)).toBeNull();
  });
});

describe("a drag of an op", () => {
  const frame = frameOf([plot], 1014); // 100 pixels a ms, from 100 on
  const row = frame.content.rowOf.get(plot)?.[0];
  const y = (row?.top ?? 0) + 26 + 10;
  const hit: Hit = { plot, lane: 0, x: 150, y, bar: 0, gap: -1 };

  function dragged(editing: Partial<Editing>, to: { x: number; y: number }) {
    const moves: unknown[] = [];
    const ghosts: (Ghost | null)[] = [];
    const drag = dragOf({ moved: (move) => moves.push(move), ...editing }, hit, {
      frame: () => frame,
      show: (ghost) => ghosts.push(ghost),
    });
    drag?.move(to);
    drag?.drop();
    return { moves, ghost: ghosts[0], last: ghosts.at(-1) };
  }

  test("reports where it ends", () => {
    const { moves, ghost, last } = dragged({}, { x: 300, y });
    expect(moves).toEqual([{ op: placedOp(plot, 0), to: 1 }]);
    expect(ghost?.refused).toBeNull();
    expect(last).toBeNull();
  });

  test("has no effect on the same position or another rank", () => {
    expect(dragged({}, { x: 140, y }).moves).toEqual([]);
    const away = dragged({}, { x: 300, y: y + 80 });
    expect(away.moves).toEqual([]);
    expect(away.ghost?.refused).toContain("stays on its rank");
  });

  test("can be refused by the page", () => {
    const { moves, ghost } = dragged({ refuses: () => "not there" }, { x: 300, y });
    expect([moves, ghost?.refused]).toEqual([[], "not there"]);
    expect(
      dragOf({ moved: () => undefined, canGrab: () => false }, hit, { frame: () => frame, show: () => undefined }),
    ).toBeNull();
  });
});
