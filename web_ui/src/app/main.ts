/** The page of `pipeplan serve`. */

import "./app.css";
import { Away, settings } from "./api.js";
import type { FormFields } from "./fields.js";
import { Page } from "./page.js";

/** Milliseconds until the page asks again for its fields. */
const AGAIN = 1000;

async function open(): Promise<void> {
  try {
    await new Page(await fields()).start();
  } catch (error) {
    document.querySelector("main")?.replaceChildren(error instanceof Error ? error.message : String(error));
  }
}

/** Fetch the fields of the form, as soon as the server answers. */
async function fields(): Promise<FormFields> {
  for (;;) {
    try {
      return await settings();
    } catch (error) {
      if (!(error instanceof Away)) throw error;
      await new Promise((done) => setTimeout(done, AGAIN));
    }
  }
}

void open();
