/** Preferences that the browser stores, if it allows that. */

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
    // the choice applies only to this page
  }
}
