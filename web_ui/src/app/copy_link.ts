/** A button that copies the page's address. */

import { make } from "../dom.js";
import { LONGEST } from "./address.js";

/** Milliseconds that the answer stays. */
const SAID = 4000;

export class CopyLink {
  readonly button = make("button", { type: "button", class: "button" }, "Copy link");
  readonly said = make("span", { class: "link-said", role: "status" });

  /** `write` brings the address up to date; `ownFiles` tells whether there are files that no link can hold. */
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
    this.said.textContent = this.words(copied);
    setTimeout(() => {
      this.said.textContent = "";
    }, SAID);
  }

  private words(copied: boolean | undefined): string {
    if (location.href.length > LONGEST) return "too long for a link: download the settings";
    const done = copied ? "copied" : "the link is in the address bar";
    return this.ownFiles() ? `${done}, without files` : done;
  }
}
