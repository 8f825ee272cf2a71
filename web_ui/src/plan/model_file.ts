/** Upload of a config.json in place of a model's name: dropped anywhere on the page, or selected. */

import type { OwnFile } from "../app/api.js";
import { button, make, onDrop } from "../dom.js";

const MOST_BYTES = 1024 * 1024;

export class ModelFile {
  readonly element: HTMLElement;
  private readonly input = make("input", {
    type: "file",
    id: "field-file",
    accept: ".json",
    "aria-describedby": "file-error",
  });
  private readonly status = make("p", { class: "hint", role: "status" });
  private readonly error = make("p", { class: "error", id: "file-error", role: "alert", hidden: true });
  private current: OwnFile | null = null;

  constructor(private readonly changed: () => void) {
    const label = make("label", { for: "field-file" }, "Drop a model's config.json, or ", make("u", {}, "choose one"));
    this.element = make(
      "div",
      { class: "drop", "data-field": "model_file" },
      label,
      this.input,
      this.status,
      this.error,
    );
    this.input.addEventListener("change", () => {
      void this.load(this.input.files?.[0]);
      this.input.value = "";
    });
    onDrop(([file]) => this.load(file));
  }

  get file(): OwnFile | null {
    return this.current;
  }

  /** Remove the file: the plan uses the name of a built-in model again. */
  clear(): void {
    this.current = null;
    this.status.replaceChildren();
    this.changed();
  }

  private async load(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    const large = file.size > MOST_BYTES;
    this.error.textContent = large ? `${file.name} is larger than a config.json can be` : "";
    this.error.hidden = !large;
    if (large) return;
    this.current = { name: file.name.slice(-80), text: await file.text() };
    const drop = button("\u00d7", `remove ${file.name}`, () => this.clear());
    this.status.replaceChildren(`the model is ${file.name} `, drop);
    this.changed();
  }
}
