/** Requests of the page of reviews and their answers. */

import { answered, type OwnFile, posted, type Settings } from "../app/api.js";
import type { FormFields } from "../app/fields.js";
import type { Review } from "../records.js";

export type {
  Review,
  ReviewChange as Change,
  ReviewedConfiguration as Reviewed,
  ReviewFinding as Finding,
} from "../records.js";

export async function reviewSettings(): Promise<FormFields> {
  return (await answered("/api/review/settings", {})).json() as Promise<FormFields>;
}

export async function review(settings: Settings, file: OwnFile, signal: AbortSignal): Promise<Review> {
  return (
    await posted("/api/review", { settings, name: file.name, content: file.text }, signal)
  ).json() as Promise<Review>;
}
