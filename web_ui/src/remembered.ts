/** What a person prefers, kept by the browser where it allows that; a page that may keep nothing begins as every page does. */

export type Wheel = "scroll" | "zoom";

const WHEEL = "pipeplan.wheel";

export function rememberedWheel(): Wheel {
  try {
    return localStorage.getItem(WHEEL) === "zoom" ? "zoom" : "scroll";
  } catch {
    return "scroll";
  }
}

export function rememberWheel(wheel: Wheel): void {
  try {
    localStorage.setItem(WHEEL, wheel);
  } catch {
    // the choice holds for this page
  }
}
