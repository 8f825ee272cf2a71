/** The last plan, for a reload of the page: it stays in the browser until its tab is closed. */

import type { Plan } from "./api.js";

const KEY = "pipeplan-plan";

/** Save a plan with the query of the address that it belongs to. */
export function savePlan(query: string, plan: Plan): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ query, plan }));
  } catch {
    // If storage is blocked or full, a reload requests the plan again.
  }
}

/** Return the saved plan of a query; null if the last plan had another query, or if storage is blocked. */
export function savedPlan(query: string): Plan | null {
  try {
    const text = sessionStorage.getItem(KEY);
    const saved = text === null ? null : (JSON.parse(text) as { query: string; plan: Plan });
    return saved?.query === query ? saved.plan : null;
  } catch {
    return null;
  }
}
