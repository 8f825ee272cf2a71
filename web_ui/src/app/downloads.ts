/** The menu of files to download. */

import { button, make } from "../dom.js";
import type { Format } from "./api.js";

export class Downloads {
  readonly element = make("details", { class: "menu" });
  private readonly message = make("p", { role: "alert", hidden: true });

  private readonly items = make("div", { class: "menu-items" });

  constructor(
    private readonly download: (format: Format) => Promise<readonly string[]>,
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

  /** Add the server's formats to the menu. */
  fill(formats: readonly Format[]): void {
    const buttons = formats.map((format) =>
      button(format.title, `download: ${format.title}`, () => void this.run(() => this.download(format))),
    );
    this.items.prepend(...buttons);
  }

  private close(): void {
    this.element.open = false;
    this.element.querySelector("summary")?.focus();
  }

  /** Download a file; the menu stays open if there are warnings. */
  private async run(download: () => Promise<readonly string[]>): Promise<void> {
    this.showMessage("", "");
    try {
      const warnings = await download();
      if (warnings.length === 0) this.close();
      else this.showMessage(warnings.join(" "), "warning");
    } catch (error) {
      this.showMessage(error instanceof Error ? error.message : String(error), "error");
    }
  }

  private showMessage(message: string, kind: string): void {
    this.message.className = kind;
    this.message.textContent = message;
    this.message.hidden = message === "";
  }
}
