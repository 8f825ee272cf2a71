/** The editor's buttons: undo and redo, moving the selected op, and actions on the text. */

import { type Format, formats } from "../app/api.js";
import { isInstalled } from "../app/extensions.js";
import { button, make } from "../dom.js";

export interface EditActions {
  undo(): void;
  redo(): void;
  reset(): void;
  shift(by: number): void;
  copy(): Promise<void>;
  link(): Promise<void>;
  compare(): void;
  search(): void;
  download(format: string): Promise<readonly string[]>;
}

export interface Possible {
  readonly undo: boolean;
  readonly redo: boolean;
  readonly reset: boolean;
  /** Selected op; empty for none. */
  readonly op: string;
  readonly valid: boolean;
}

export class EditToolbar {
  readonly element = make("div", { class: "edit-bar", role: "toolbar", "aria-label": "editing" });
  private readonly undo: HTMLButtonElement;
  private readonly redo: HTMLButtonElement;
  private readonly reset: HTMLButtonElement;
  private readonly earlier: HTMLButtonElement;
  private readonly later: HTMLButtonElement;
  private readonly compare: HTMLButtonElement;
  private readonly search: HTMLButtonElement;
  private readonly selected = make("span", { class: "chosen" });
  private readonly status = make("span", { class: "message faint", role: "status" });
  private readonly files = make("select", { "aria-label": "download the edited schedule as" });
  private clearing: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly actions: EditActions) {
    this.undo = button("Undo", "undo (ctrl+z)", () => actions.undo());
    this.redo = button("Redo", "redo (ctrl+shift+z)", () => actions.redo());
    this.reset = button("Reset", "restore the original schedule (can be undone)", () => actions.reset());
    this.earlier = button("\u2190 Earlier", "move the selected op one place earlier (alt+left)", () =>
      actions.shift(-1),
    );
    this.later = button("Later \u2192", "move the selected op one place later (alt+right)", () => actions.shift(1));
    this.compare = button("Add to comparison", "add the edited schedule to the comparison above", () =>
      actions.compare(),
    );
    this.search = button("Search from it", "add the edited schedule to the comparison and start a search from it", () =>
      actions.search(),
    );
    const copy = button("Copy text", "copy the rows of ops", () => void this.run(actions.copy(), "copied"));
    const link = button(
      "Copy link",
      "copy a link to a page of this order, which computes its times by itself",
      () => void this.run(actions.link(), "copied; what follows # opens in any page that pipeplan writes"),
    );
    this.files.append(make("option", { value: "" }, "Download as\u2026"));
    this.files.addEventListener("change", () => void this.download());
    this.element.append(
      group(this.undo, this.redo, this.reset),
      group(this.earlier, this.later, this.selected),
      group(this.compare, ...(isInstalled("search") ? [this.search] : []), copy, link, this.files, this.status),
    );
  }

  /** Add the formats that the server writes. */
  async fill(): Promise<void> {
    if (this.files.options.length > 1) return;
    const written = (await formats()).filter((format: Format) => format.written);
    this.files.append(...written.map((format) => make("option", { value: format.name }, format.title)));
  }

  update(possible: Possible): void {
    this.undo.disabled = !possible.undo;
    this.redo.disabled = !possible.redo;
    this.reset.disabled = !possible.reset;
    this.earlier.disabled = this.later.disabled = possible.op === "";
    this.compare.disabled = this.search.disabled = !possible.valid;
    this.files.disabled = !possible.valid;
    this.selected.textContent = possible.op === "" ? "no op selected" : possible.op;
  }

  showMessage(text: string, seconds = 6): void {
    this.status.textContent = text;
    clearTimeout(this.clearing);
    this.clearing = setTimeout(() => {
      this.status.textContent = "";
    }, 1000 * seconds);
  }

  private async download(): Promise<void> {
    const { value } = this.files;
    this.files.value = "";
    if (value !== "") await this.run(this.actions.download(value), "saved");
  }

  private async run(doing: Promise<readonly string[] | void>, done: string): Promise<void> {
    try {
      const warnings = (await doing) ?? [];
      if (warnings.length === 0) this.showMessage(done);
      else this.showMessage(`${done}. ${warnings.join(" ")}`, 60);
    } catch (error) {
      this.showMessage(error instanceof Error ? error.message : String(error));
    }
  }
}

function group(...children: Node[]): HTMLElement {
  return make("div", { class: "edit-group", role: "group" }, ...children);
}
