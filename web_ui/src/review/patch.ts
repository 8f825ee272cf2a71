/** The patch as a diff, with buttons that copy and save it. */

import { button, make } from "../dom.js";

/** Return the CSS class of a line of a diff. */
export function kindOf(line: string): "head" | "hunk" | "added" | "removed" | "same" {
  if (line.startsWith("--- ") || line.startsWith("+++ ")) return "head";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "same";
}

export class PatchView {
  readonly element = make("section", { class: "patch", hidden: true });
  private readonly status = make("span", { class: "link-status", role: "status" });

  show(patch: string): void {
    this.element.hidden = patch === "";
    const lines = patch.replace(/\n$/, "").split("\n");
    const copy = button("Copy", "copy the patch", () => void this.copy(patch));
    const address = URL.createObjectURL(new Blob([patch], { type: "text/x-diff" }));
    const save = make("a", { class: "button", href: address, download: "fix.patch" }, "Save");
    this.element.replaceChildren(
      make("h3", {}, "Patch"),
      make("div", { class: "tabs" }, copy, save, this.status),
      make(
        "pre",
        { class: "diff", tabindex: 0, "aria-label": "patch" },
        ...lines.map((line) => make("span", { class: kindOf(line) }, `${line}\n`)),
      ),
    );
  }

  private async copy(text: string): Promise<void> {
    const copied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    this.status.textContent = copied ? "copied" : "select the text and copy it";
    setTimeout(() => {
      this.status.textContent = "";
    }, 4000);
  }
}
