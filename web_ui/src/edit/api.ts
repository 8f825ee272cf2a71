/** Requests of the editor and their answers. */

import type { Question } from "../app/api.js";
import { posted } from "../app/api.js";
import type { EditBegin, EditedShape, EditReply, Settings } from "../records.js";

export type {
  EditBegin as Begin,
  EditedShape as Shape,
  EditReply as Verdict,
  Flaw,
  TrainerReply as Trainer,
  Waiting,
} from "../records.js";

export interface EditQuestion {
  readonly settings: Settings;
  readonly name: string;
  readonly rows: string;
  readonly shape: EditedShape | null;
  readonly before: string | null;
  readonly draw: boolean;
}

export async function begin(question: Question): Promise<EditBegin> {
  return (await posted("/api/edit/begin", question)).json() as Promise<EditBegin>;
}

export async function judge(question: EditQuestion): Promise<EditReply> {
  return (await posted("/api/edit", question)).json() as Promise<EditReply>;
}

/** Settings that a text answers by itself. */
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

/** The settings without the shape, which is the text's own. */
export function costsOf(settings: Settings): Settings {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !SHAPE.has(name)));
}
