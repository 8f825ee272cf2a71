/** Meaning of wheel events. Pinches on a touchpad are wheel events with ctrl, in small steps. */

import type { Wheel } from "./remembered.js";

export type Turn =
  | { readonly does: "zoom" | "stretch"; readonly factor: number }
  | { readonly does: "pan" | "scroll"; readonly pixels: number };

const LINE = 16;
const PAGE = 400;
/** Maximum part of a turn that counts as a pinch: a notch of a mouse is many times a finger's movement between two events. */
const MOST_PINCH = 30;

type WheelParts = Pick<WheelEvent, "deltaX" | "deltaY" | "deltaMode" | "ctrlKey" | "metaKey" | "shiftKey" | "altKey">;

export function turnOf(event: WheelParts, wheel: Wheel): Turn {
  const unit = event.deltaMode === 0 ? 1 : event.deltaMode === 1 ? LINE : PAGE;
  const [across, down] = [event.deltaX * unit, event.deltaY * unit];
  const turned = down || across; // browsers turn shift and wheel sideways
  if (event.ctrlKey || event.metaKey) {
    return { does: "zoom", factor: 2 ** (-0.02 * Math.min(Math.max(turned, -MOST_PINCH), MOST_PINCH)) };
  }
  if (event.altKey) return { does: "stretch", factor: 2 ** (-0.002 * turned) };
  if (event.shiftKey) return { does: wheel === "zoom" ? "scroll" : "pan", pixels: turned };
  if (Math.abs(across) > Math.abs(down)) return { does: "pan", pixels: across };
  return wheel === "zoom" ? { does: "zoom", factor: 2 ** (-0.002 * down) } : { does: "scroll", pixels: down };
}
