/** The menu of everything that can be taken away. */

import { button, make } from "../dom.js";

/** Format, what it is called, and whether it holds all timelines that show (`all`) or the first of them (`one`). */
const FORMATS = [
  ["png", "Picture, PNG", "all"],
  ["svg", "Picture, SVG", "all"],
  ["pdf", "Picture, PDF", "all"],
  ["html", "Interactive page, HTML", "all"],
  ["json", "Figures and times, JSON", "all"],
  ["torch-csv", "PyTorch CSV", "one"],
  ["torch-csv-comms", "PyTorch CSV with communication", "one"],
  ["torchtitan", "torchtitan settings", "one"],
  ["megatron", "Megatron-LM flags", "one"],
  ["zb-nodes", "Zero-bubble runtime nodes", "one"],
  ["trace", "Trace for Perfetto", "one"],
  ["timeline-csv", "Times of every op, CSV", "one"],
  ["costs", "Costs, JSON", "one"],
] as const;

export class Downloads {
  readonly element = make("details", { class: "menu" });
  private readonly error = make("p", { class: "error", role: "alert", hidden: true });

  constructor(wanted: (format: string, holds: "all" | "one") => Promise<void>, settings: () => void) {
    const buttons = FORMATS.map(([format, text, holds]) =>
      button(text, `download: ${text}`, () => void this.run(() => wanted(format, holds))),
    );
    const config = button("These settings, JSON", "download a config file for the command line", settings);
    const menu = make("div", { class: "menu-items" }, ...buttons, config, this.error);
    this.element.append(make("summary", { class: "button" }, "Download"), menu);
    this.element.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
    document.addEventListener("click", (event) => {
      if (!this.element.contains(event.target as Node)) this.element.open = false;
    });
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
