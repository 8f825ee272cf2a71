import { expect, test } from "vitest";
import { placeLabels } from "../src/app/label_places.js";

const WITHIN = { left: 0, right: 400, top: 0, bottom: 300 };

function boxes(points: readonly { x: number; y: number; name: string }[], places: readonly { x: number; y: number }[]) {
  return places.map(({ x, y }, at) => ({
    left: x,
    right: x + 6.9 * points[at].name.length,
    top: y - 11,
    bottom: y + 3,
  }));
}

function touch(one: ReturnType<typeof boxes>[number], other: ReturnType<typeof boxes>[number]): boolean {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

test("names overlap no other name, point or line, and lie within the picture", () => {
  const stair = [
    [40, 60],
    [120, 140],
    [130, 150],
    [260, 200],
  ] as const;
  const marks = [
    { x: 130, y: 130, name: "v-half" },
    { x: 390, y: 210, name: "zbv-heuristic" },
  ];
  const points = [...stair.map(([x, y]) => ({ x, y, name: "281.5" })), ...marks];
  const placed = boxes(points, placeLabels(points, stair, WITHIN));
  placed.forEach((box, at) => {
    expect(box.left).toBeGreaterThanOrEqual(WITHIN.left);
    expect(box.right).toBeLessThanOrEqual(WITHIN.right);
    for (const other of placed.slice(at + 1)) expect(touch(box, other)).toBe(false);
    for (const { x, y } of points)
      expect(touch(box, { left: x - 6, right: x + 6, top: y - 6, bottom: y + 6 })).toBe(false);
    stair.slice(1).forEach(([x, y], step) => {
      const [before, height] = stair[step];
      expect(touch(box, { left: before, right: x, top: height - 1, bottom: height + 1 })).toBe(false);
      expect(touch(box, { left: x - 1, right: x + 1, top: height, bottom: y })).toBe(false);
    });
  });
});

test("a name without a free position is still placed", () => {
  const crowd = Array.from({ length: 60 }, () => ({ x: 20, y: 20, name: "a long name" }));
  expect(placeLabels(crowd, [], { left: 0, right: 90, top: 0, bottom: 40 })).toHaveLength(60);
});
