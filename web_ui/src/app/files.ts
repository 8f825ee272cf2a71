/** Dropped and chosen files: configs and profiles fill the form, schedules join the comparison. */

import { make, onDrop } from "../dom.js";
import { type Config, config, type Format, type OwnFile, Refusal, shape } from "./api.js";
import { CONFIGS, holdsSchedule, suffixOf } from "./file_kind.js";

/** The server's limit. */
const MOST_BYTES = 8 * 1024 * 1024;

/** Bytes of a file that are looked at to tell what it holds. */
const SNIFFED = 4096;

export interface Taken {
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
    onDrop((files) => this.take(files));
  }

  /** Take files of these formats as schedules. */
  fill(formats: readonly Format[]): void {
    this.suffixes = new Set(formats.map((format) => suffixOf(format.ending)));
    this.input.accept = [...new Set([...CONFIGS, ...this.suffixes])].join(",");
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
    if (holdsSchedule(file.name, await file.slice(0, SNIFFED).text(), this.suffixes)) {
      const schedule = { name: file.name.slice(-80), text: await file.text() };
      const taken = await shape(schedule);
      this.taken.schedule(schedule, taken);
      const { ranks, microbatches } = taken.settings;
      this.tell(`${file.name} joins the comparison: ${ranks} ranks, ${microbatches} microbatches`, "");
    } else {
      const found = await config(file);
      this.taken.config(found);
      this.tell([`costs and shape are taken from ${file.name}`, ...found.notes].join("; "), "");
    }
  }

  private tell(said: string, wrong: string): void {
    this.said.textContent = said;
    this.error.textContent = wrong;
    this.error.hidden = wrong === "";
  }
}
