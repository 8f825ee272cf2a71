/** Dropped and chosen files: configs and profiles fill the form, schedules join the comparison. */

import { make, onDrop } from "../dom.js";
import { type Config, config, type Format, type OwnFile, Refusal, shape } from "./api.js";
import { CONFIGS, isSchedule, suffixOf } from "./file_kind.js";

/** Maximum size of a file; the server has the same limit. */
const MOST_BYTES = 8 * 1024 * 1024;

/** Number of bytes that are read to detect the kind of a file. */
const SNIFFED = 4096;

export interface FileHandlers {
  config(config: Config): void;
  /** `shape` has the ranks and microbatches of the schedule. */
  schedule(file: OwnFile, shape: Config): void;
}

export class FileDrop {
  readonly element: HTMLElement;
  private readonly input = make("input", {
    type: "file",
    multiple: true,
    id: "field-file",
    "aria-describedby": "file-error",
  });
  private suffixes: ReadonlySet<string> = new Set();
  private readonly status = make("p", { class: "hint", role: "status" });
  private readonly error = make("p", { class: "error", id: "file-error", role: "alert", hidden: true });

  constructor(private readonly handlers: FileHandlers) {
    const label = make(
      "label",
      { for: "field-file" },
      "Drop a config, profile or schedule file, or ",
      make("u", {}, "choose one"),
    );
    this.element = make("div", { class: "drop", "data-field": "file" }, label, this.input, this.status, this.error);
    this.input.addEventListener("change", () => {
      void this.take([...(this.input.files ?? [])]);
      this.input.value = "";
    });
    onDrop((files) => this.take(files));
  }

  /** Accept files of these formats as schedules. */
  fill(formats: readonly Format[]): void {
    this.suffixes = new Set(formats.map((format) => suffixOf(format.ending)));
    this.input.accept = [...new Set([...CONFIGS, ...this.suffixes])].join(",");
  }

  private async take(files: readonly File[]): Promise<void> {
    this.showStatus("", "");
    for (const file of files) {
      try {
        await this.takeOne(file);
      } catch (error) {
        this.showStatus("", error instanceof Refusal ? error.message : `${file.name} cannot be read`);
      }
    }
  }

  private async takeOne(file: File): Promise<void> {
    if (file.size > MOST_BYTES) {
      const size = (file.size / 1024 / 1024).toFixed(0);
      throw new Refusal([{ field: "file", message: `${file.name} has ${size} MiB; the limit is 8 MiB` }]);
    }
    if (isSchedule(file.name, await file.slice(0, SNIFFED).text(), this.suffixes)) {
      const schedule = { name: file.name.slice(-80), text: await file.text() };
      const shapeOfFile = await shape(schedule);
      this.handlers.schedule(schedule, shapeOfFile);
      const { ranks, microbatches } = shapeOfFile.settings;
      this.showStatus(`${file.name} joins the comparison: ${ranks} ranks, ${microbatches} microbatches`, "");
    } else {
      const loaded = await config(file);
      this.handlers.config(loaded);
      this.showStatus([`costs and shape are taken from ${file.name}`, ...loaded.notes].join("; "), "");
    }
  }

  private showStatus(message: string, error: string): void {
    this.status.textContent = message;
    this.error.textContent = error;
    this.error.hidden = error === "";
  }
}
