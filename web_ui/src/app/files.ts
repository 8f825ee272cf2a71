/** Dropped and chosen files: configs and profiles fill the form, schedules join the comparison. */

import { make } from "../dom.js";
import { type Config, config, type OwnFile, Refusal } from "./api.js";

/** The server's limit. */
const MOST_BYTES = 8 * 1024 * 1024;
const ENDINGS = ".yaml,.yml,.toml,.json,.csv";

export interface Taken {
  config(config: Config): void;
  schedule(file: OwnFile): void;
}

export class FileDrop {
  readonly element: HTMLElement;
  private readonly input = make("input", {
    type: "file",
    accept: ENDINGS,
    multiple: true,
    id: "field-file",
    "aria-describedby": "file-error",
  });
  private readonly said = make("p", { class: "hint", role: "status" });
  private readonly error = make("p", { class: "error", id: "file-error", role: "alert", hidden: true });

  constructor(private readonly taken: Taken) {
    const label = make(
      "label",
      { for: "field-file" },
      "Drop a config, profile or schedule file, or ",
      make("u", {}, "choose one"),
    );
    this.element = make("div", { class: "drop", "data-field": "file" }, label, this.input, this.said, this.error);
    this.input.addEventListener("change", () => {
      void this.take([...(this.input.files ?? [])]);
      this.input.value = "";
    });
    this.listen();
  }

  /** Files can be dropped anywhere on the page. */
  private listen(): void {
    const over = (on: boolean) => document.body.classList.toggle("dragging", on);
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      over(true);
    });
    document.addEventListener("dragleave", (event) => event.relatedTarget === null && over(false));
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      over(false);
      void this.take([...(event.dataTransfer?.files ?? [])]);
    });
  }

  private async take(files: readonly File[]): Promise<void> {
    this.tell("", "");
    for (const file of files) {
      try {
        await this.takeOne(file);
      } catch (error) {
        this.tell("", error instanceof Refusal ? error.message : `${file.name} cannot be read`);
      }
    }
  }

  private async takeOne(file: File): Promise<void> {
    if (file.size > MOST_BYTES) {
      const size = (file.size / 1024 / 1024).toFixed(0);
      throw new Refusal([{ field: "file", message: `${file.name} has ${size} MiB; the limit is 8 MiB` }]);
    }
    if (await holdsSchedule(file)) {
      this.taken.schedule({ name: file.name.slice(-80), text: await file.text() });
      this.tell(`${file.name} is compared with the others`, "");
    } else {
      const found = await config(file);
      this.taken.config(found);
      this.tell([`costs and shape are from ${file.name}`, ...found.notes].join("; "), "");
    }
  }

  private tell(said: string, wrong: string): void {
    this.said.textContent = said;
    this.error.textContent = wrong;
    this.error.hidden = wrong === "";
  }
}

/** CSV files and pipeplan's own JSON hold schedules; other files are configs. */
async function holdsSchedule(file: File): Promise<boolean> {
  const name = file.name.toLowerCase();
  if (name.endsWith(".csv")) return true;
  return name.endsWith(".json") && /"format"\s*:\s*"pipeplan-/.test(await file.slice(0, 4096).text());
}
