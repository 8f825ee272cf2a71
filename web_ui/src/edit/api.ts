/** Requests of the editor and their responses. */

import type { CompareRequest } from "../app/api.js";
import { post } from "../app/api.js";
import type { EditBegin, EditedShape, EditReply, Settings } from "../records.js";

export type {
  EditBegin as Begin,
  EditedShape as Shape,
  EditReply as Verdict,
  Flaw,
  TrainerReply as Trainer,
  Waiting,
} from "../records.js";

export interface EditRequest {
  readonly settings: Settings;
  readonly name: string;
  readonly rows: string;
  readonly shape: EditedShape | null;
  readonly before: string | null;
  readonly draw: boolean;
}

export async function begin(request: CompareRequest): Promise<EditBegin> {
  return (await post("/api/edit/begin", request)).json() as Promise<EditBegin>;
}

export async function judge(request: EditRequest): Promise<EditReply> {
  return (await post("/api/edit", request)).json() as Promise<EditReply>;
}

/** Settings that a text determines by itself. */
const SHAPE = new Set([
  "ranks",
  "stages",
  "microbatches",
  "chunks",
  "slices",
  "group_size",
  "variant",
  "recompute",
  "offload",
]);

/** Return the settings without the shape, which the text determines. */
export function costsOf(settings: Settings): Settings {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !SHAPE.has(name)));
}
