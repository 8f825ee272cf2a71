/** The command that computes the current view, and a button that copies it. */

import { make } from "../dom.js";

const MESSAGE_MS = 2500;

export class Command {
  readonly element = make("section", { class: "pd-command", "aria-label": "on your own machine" });
  private readonly text = make("code");
  private readonly status = make("span", { class: "pd-status", role: "status" });

  constructor(version: string) {
    const copy = make("button", { type: "button" }, "Copy");
    copy.addEventListener("click", () => void this.copy());
    const what = `This page was precomputed by pipeplan ${version}. To compute it with your own costs:`;
    this.element.append(
      make("p", {}, what),
      make(
        "div",
        { class: "pd-box" },
        make("pre", { tabindex: 0, role: "region", "aria-label": "command" }, this.text),
        make("div", { class: "pd-copy" }, copy, this.status),
      ),
    );
  }

  show(command: string): void {
    // A line may end between options, and not after the hyphens within them.
    const parts = command.split(/ (?=--)/).map((part) => make("span", {}, part));
    this.text.replaceChildren(
      "pip install .  # in a checkout of pipeplan\n",
      ...parts.flatMap((part, at) => (at > 0 ? [" ", part] : [part])),
    );
  }

  private async copy(): Promise<void> {
    const text = this.text.textContent ?? "";
    const copied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    if (copied !== true) window.getSelection()?.selectAllChildren(this.text);
    this.status.textContent = copied === true ? "copied" : "selected: copy it by key";
    setTimeout(() => {
      this.status.textContent = "";
    }, MESSAGE_MS);
  }
}
