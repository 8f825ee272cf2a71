/** The menu of files to download. */

import { button, make } from "../dom.js";
import type { Format } from "./api.js";

export class Downloads {
  readonly element = make("details", { class: "menu" });
  private readonly error = make("p", { class: "error", role: "alert", hidden: true });

  private readonly items = make("div", { class: "menu-items" });

  constructor(
    private readonly wanted: (format: Format) => Promise<void>,
    settings: () => void,
  ) {
    const config = button("These settings, JSON", "download a config file for the command line", settings);
    this.items.append(config, this.error);
    this.element.append(make("summary", { class: "button" }, "Download"), this.items);
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
    document.addEventListener("click", (event) => {
      if (!this.element.contains(event.target as Node)) this.element.open = false;
    });
  }

  /** Put the formats that the server knows into the menu. */
  fill(formats: readonly Format[]): void {
    const buttons = formats.map((format) =>
      button(format.title, `download: ${format.title}`, () => void this.run(() => this.wanted(format))),
    );
    this.items.prepend(...buttons);
  }

  private close(): void {
    this.element.open = false;
    this.element.querySelector("summary")?.focus();
  }

  private async run(wanted: () => Promise<void>): Promise<void> {
    this.fail("");
    try {
      await wanted();
      this.close();
    } catch (error) {
      this.fail(error instanceof Error ? error.message : String(error));
    }
  }

  private fail(message: string): void {
    this.error.textContent = message;
    this.error.hidden = message === "";
  }
}
