/** The review page: a script or a recipe, the findings at its lines, and the patch. */

import "./review.css";
import { reviewSettings } from "./api.js";
import { ReviewPage } from "./page.js";

async function open(): Promise<void> {
  try {
    new ReviewPage(await reviewSettings()).start();
  } catch (error) {
    document.querySelector("main")?.replaceChildren(error instanceof Error ? error.message : String(error));
  }
}

void open();
