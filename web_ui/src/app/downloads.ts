/** The menu of files to download. */

import { button, make } from "../dom.js";
import type { Format } from "./api.js";

export class Downloads {
  readonly element = make("details", { class: "menu" });
  private readonly message = make("p", { role: "alert", hidden: true });

  private readonly items = make("div", { class: "menu-items" });

  constructor(
    private readonly wanted: (format: Format) => Promise<readonly string[]>,
    settings: () => void,
  ) {
    const config = button(
      "These settings, JSON",
      "download these settings as a config file for the command line",
      settings,
    );
    this.items.append(config, this.message);
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

  /** Download a file; the menu stays open where there is something to know of it. */
  private async run(wanted: () => Promise<readonly string[]>): Promise<void> {
    this.tell("", "");
    try {
      const warnings = await wanted();
      if (warnings.length === 0) this.close();
      else this.tell(warnings.join(" "), "warning");
    } catch (error) {
      this.tell(error instanceof Error ? error.message : String(error), "error");
    }
  }

  private tell(message: string, kind: string): void {
    this.message.className = kind;
    this.message.textContent = message;
    this.message.hidden = message === "";
  }
}
