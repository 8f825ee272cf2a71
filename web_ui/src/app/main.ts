/** The page of `pipeplan serve`. */

import "./app.css";
import { settings } from "./api.js";
import { Page } from "./page.js";

async function open(): Promise<void> {
  try {
    await new Page(await settings()).start();
  } catch (error) {
    document.querySelector("main")?.replaceChildren(error instanceof Error ? error.message : String(error));
  }
}

void open();
