/** Requests of the review page and their responses. */

import { type OwnFile, post, type Settings, send } from "../app/api.js";
import type { FormFields } from "../app/fields.js";
import type { Review } from "../records.js";

export type {
  MissingFact as Missing,
  Review,
  ReviewChange as Change,
  ReviewedConfiguration as Reviewed,
  ReviewedQuestion as Question,
  ReviewFinding as Finding,
} from "../records.js";

export async function reviewSettings(): Promise<FormFields> {
  return (await send("/api/review/settings", {})).json() as Promise<FormFields>;
}

export async function review(settings: Settings, file: OwnFile, signal: AbortSignal): Promise<Review> {
  return (
    await post("/api/review", { settings, name: file.name, content: file.text }, signal)
  ).json() as Promise<Review>;
}
