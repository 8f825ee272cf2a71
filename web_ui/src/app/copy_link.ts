/** A button that copies the page's address. */

import { make } from "../dom.js";
import { LONGEST } from "./address.js";

/** Duration of the status message in milliseconds. */
const MESSAGE_MS = 4000;

export class CopyLink {
  readonly button = make("button", { type: "button", class: "button" }, "Copy link");
  readonly status = make("span", { class: "link-status", role: "status" });

  /** `write` updates the address; `ownFiles` returns whether the comparison has files, which a link cannot contain. */
  constructor(
    private readonly write: () => void,
    private readonly ownFiles: () => boolean,
  ) {
    this.button.addEventListener("click", () => void this.copy());
  }

  private async copy(): Promise<void> {
    this.write();
    const copied = await navigator.clipboard?.writeText(location.href).then(
      () => true,
      () => false,
    );
    this.status.textContent = this.messageFor(copied);
    setTimeout(() => {
      this.status.textContent = "";
    }, MESSAGE_MS);
  }

  private messageFor(copied: boolean | undefined): string {
    if (location.href.length > LONGEST) return "too long for a link: download the settings";
    const done = copied ? "copied" : "the link is in the address bar";
    return this.ownFiles() ? `${done}, without files` : done;
  }
}
