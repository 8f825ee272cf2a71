/** The last answer, for when the page is loaded again: it stays in the browser, and as long as its tab is open. */

import type { Plan } from "./api.js";

const KEY = "pipeplan-plan";

/** Keep an answer with the question that it is for. */
export function keep(question: string, plan: Plan): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ question, plan }));
  } catch {
    // Storage may be blocked or full: the answer is then asked for again.
  }
}

/** The answer to a question; null where another one was the last, or storage is blocked. */
export function kept(question: string): Plan | null {
  try {
    const text = sessionStorage.getItem(KEY);
    const found = text === null ? null : (JSON.parse(text) as { question: string; plan: Plan });
    return found?.question === question ? found.plan : null;
  } catch {
    return null;
  }
}
