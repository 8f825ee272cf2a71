/** The planning page: from a model and a cluster to the configuration to train with. */

import "./plan.css";
import { planSettings } from "./api.js";
import { PlanPage } from "./page.js";

async function open(): Promise<void> {
  try {
    new PlanPage(await planSettings()).start();
  } catch (error) {
    document.querySelector("main")?.replaceChildren(error instanceof Error ? error.message : String(error));
  }
}

void open();
