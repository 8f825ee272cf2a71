/** Drags of ops on the timeline of an edited schedule. */

import { type Editing, type Ghost, type Move, type PlacedOp, placeAt, placedOp } from "./editing.js";
import type { Frame } from "./frame.js";
import { toPicture } from "./frame.js";
import type { Drag, Point } from "./grabs.js";
import type { Hit } from "./hit.js";

/** Distance in pixels above and below its lane within which an op remains on its lane. */
const LOOSE = 14;

export interface MovingHandlers {
  frame(): Frame;
  /** Show the dragged op; null after it is dropped. */
  show(ghost: Ghost | null): void;
}

/** Return the drag of the op under a point, or null if it cannot be moved. */
export function dragOf(editing: Editing, hit: Hit, handlers: MovingHandlers): Drag | null {
  if (hit.bar < 0) return null;
  const op = placedOp(hit.plot, hit.bar);
  if (editing.canGrab?.(op) === false) return null;
  return new OpDrag(editing, op, hit, handlers);
}

class OpDrag implements Drag {
  private ghost: Ghost | null = null;

  constructor(
    private readonly editing: Editing,
    private readonly op: PlacedOp,
    private readonly hit: Hit,
    private readonly handlers: MovingHandlers,
  ) {}

  move({ x, y }: Point): void {
    const frame = this.handlers.frame();
    const { plot } = this.hit;
    const shift = frame.x.invert(x) - frame.x.invert(this.hit.x);
    const to = placeAt(plot, this.op, frame.x.invert(x));
    this.ghost = { op: this.op, shift, to, refused: this.refusal(frame, y, { op: this.op, to }) };
    this.handlers.show(this.ghost);
  }

  drop(): void {
    const { ghost } = this;
    this.cancel();
    if (ghost !== null && ghost.refused === null && ghost.to !== this.op.index) {
      this.editing.moved({ op: this.op, to: ghost.to });
    }
  }

  cancel(): void {
    this.handlers.show(null);
  }

  private refusal(frame: Frame, y: number, move: Move): string | null {
    const row = frame.content.rowOf.get(this.hit.plot)?.[this.op.rank];
    const top = row === undefined ? 0 : toPicture(frame, row.top);
    const away = row === undefined || y < top - LOOSE || y > top + row.height + LOOSE;
    if (away) return `${this.op.name} stays on its rank: the placement assigns stages to ranks`;
    return move.to === this.op.index ? null : (this.editing.refuses?.(move) ?? null);
  }
}
