/** Placement of the names of points: each near its point, without overlapping names, points or lines. */

export interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export interface Named {
  readonly x: number;
  readonly y: number;
  readonly name: string;
}

/** Width of a character of a name: a generous estimate, so that names never touch. */
const CHARACTER = 6.9;
const LINE = 14;
const RADIUS = 8;

/** Candidate places of a name around its point: left and top edge of its box relative to the point, given its width. */
const AROUND: readonly ((width: number) => readonly [number, number])[] = [10, 22, 36, 52].flatMap((away) => [
  (width: number) => [-width / 2, -away - LINE + 2] as const,
  () => [away, -LINE / 2] as const,
  () => [away - 4, -away - 6] as const,
  (width: number) => [-width - away, -LINE / 2] as const,
  (width: number) => [-width - away + 4, -away - 6] as const,
  () => [away - 4, away - 6] as const,
  (width: number) => [-width / 2, away] as const,
  (width: number) => [-width - away + 4, away - 6] as const,
]);

/** Return the left end of each name's baseline. The staircase goes right, then down, from point to point. */
export function placeLabels(
  points: readonly Named[],
  stair: readonly (readonly [number, number])[],
  within: Box,
): { x: number; y: number }[] {
  const dots = points.map(({ x, y }) => ({ left: x - RADIUS, right: x + RADIUS, top: y - RADIUS, bottom: y + RADIUS }));
  const occupied: Box[] = [...dots, ...stepsOf(stair)];
  return points.map((point) => {
    const width = CHARACTER * point.name.length;
    const boxes = AROUND.map((place) => {
      const [aside, above] = place(width);
      const left = Math.max(within.left, Math.min(point.x + aside, within.right - width));
      return { left, right: left + width, top: point.y + above, bottom: point.y + above + LINE };
    });
    const costs = boxes.map((box, at) => cost(box, occupied, within) + 0.1 * at);
    const best = boxes[costs.indexOf(Math.min(...costs))];
    occupied.push(best);
    return { x: best.left, y: best.bottom - 3 };
  });
}

/** Return the area of a box that overlaps occupied boxes, plus twice its area outside of the picture. */
function cost(box: Box, occupied: readonly Box[], within: Box): number {
  const area = (box.right - box.left) * (box.bottom - box.top);
  const outside = area - shared(box, within);
  return occupied.reduce((sum, other) => sum + shared(box, other), 2 * outside);
}

function shared(one: Box, other: Box): number {
  const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
  return width > 0 && height > 0 ? width * height : 0;
}

/** The lines of a staircase as thin boxes. */
function stepsOf(stair: readonly (readonly [number, number])[]): Box[] {
  const sorted = [...stair].sort((one, other) => one[0] - other[0]);
  return sorted.slice(1).flatMap(([x, y], at) => {
    const [before, height] = sorted[at];
    return [
      { left: before, right: x, top: height - 2, bottom: height + 2 },
      { left: x - 2, right: x + 2, top: Math.min(y, height), bottom: Math.max(y, height) },
    ];
  });
}
