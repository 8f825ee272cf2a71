/** Buttons and the search box above the picture. */

import { button, make, rename } from "./dom.js";
import type { Wheel } from "./remembered.js";
import type { State } from "./state.js";

export interface Actions {
  state(): State;
  set(change: Partial<State>): void;
  zoomBy(factor: number): void;
  find(text: string): void;
  step(by: number): void;
  save(format: "png" | "svg"): void;
  help(): void;
  switchWheel(): void;
}

export interface Possible {
  readonly gaps: boolean;
  readonly memory: boolean;
  readonly overlay: boolean;
  readonly scale: boolean;
}

/** State that a key or a button toggles. */
export type Flippable = "gaps" | "memory" | "critical" | "scale";

const THEMES: Record<State["theme"], State["theme"]> = { auto: "light", light: "dark", dark: "auto" };

export class Toolbar {
  readonly element = make("div", { class: "pp-toolbar", role: "toolbar", "aria-label": "timeline" });
  readonly search = make("input", {
    type: "search",
    placeholder: "find an op: 3F7",
    "aria-label": "find an op, such as 3F7; F7 finds it on every stage",
    title: "find an op ( / ), such as 3F7; F7 finds it on every stage",
    spellcheck: "false",
    autocomplete: "off",
    maxlength: 64,
  });
  private readonly matchText = make("span", { class: "pp-matches", "aria-live": "polite" });
  private readonly gaps: HTMLButtonElement;
  private readonly memory: HTMLButtonElement;
  private readonly critical: HTMLButtonElement;
  private readonly scale: HTMLButtonElement;
  private readonly layout: HTMLButtonElement;
  private readonly wheel: HTMLButtonElement;
  private readonly more: HTMLButtonElement;
  private readonly theme: HTMLButtonElement;

  constructor(private readonly actions: Actions) {
    this.gaps = this.toggle("Idle reasons", "colour idle time by its reason (g)", "gaps");
    this.memory = this.toggle("Memory", "show memory (b)", "memory");
    this.critical = this.toggle("Critical path", "highlight the critical path (c)", "critical");
    this.scale = this.toggle("Ratios", "colour ops by their ratio instead of by kind (v)", "scale");
    this.layout = button("Overlay", "overlay the schedules (o)", () => this.switchLayout());
    this.wheel = button("Wheel", "wheel scrolls or zooms (z); ctrl + wheel always zooms", () => actions.switchWheel());
    this.wheel.classList.add("pp-for-wheels");
    this.more = button("\u22ef", "more", () => this.showMore());
    this.more.classList.add("pp-more");
    this.more.setAttribute("aria-expanded", "false");
    this.theme = button("Theme", "light, dark, or the system's setting (t)", () => this.switchTheme());
    this.search.addEventListener("input", () => actions.find(this.search.value));
    this.search.addEventListener("keydown", (event) => this.typed(event));
    this.element.append(this.searchGroup(), this.zoomGroup(), this.showGroup(), this.saveGroup());
  }

  /** Show the current state. */
  update(state: State, possible: Possible, matchText: string, wheel: Wheel): void {
    rename(this.wheel, `Wheel: ${wheel}`);
    press(this.gaps, state.gaps && possible.gaps, possible.gaps);
    press(this.memory, state.memory && possible.memory, possible.memory);
    press(this.critical, state.critical, true);
    press(this.layout, state.layout === "overlaid" && possible.overlay, possible.overlay);
    press(this.scale, state.scale && possible.scale, possible.scale);
    this.scale.hidden = !possible.scale;
    this.layout.hidden = !possible.overlay;
    rename(this.theme, `Theme: ${state.theme}`);
    this.matchText.textContent = matchText;
    if (document.activeElement !== this.search) this.search.value = state.query;
  }

  switchLayout(): void {
    this.actions.set({ layout: this.actions.state().layout === "overlaid" ? "stacked" : "overlaid" });
  }

  switchTheme(): void {
    this.actions.set({ theme: THEMES[this.actions.state().theme] });
  }

  /** Toggle a part of the state. */
  flip(name: Flippable): void {
    if (!this[name].disabled) this.actions.set({ [name]: !this.actions.state()[name] });
  }

  /** In narrow windows, less common actions are behind a button. */
  private showMore(): void {
    const open = this.element.classList.toggle("pp-open");
    this.more.setAttribute("aria-expanded", String(open));
  }

  private toggle(text: string, title: string, name: Flippable): HTMLButtonElement {
    return button(text, title, () => this.flip(name));
  }

  private typed(event: KeyboardEvent): void {
    if (event.key === "Enter") this.actions.step(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") {
      this.search.value = "";
      this.actions.find("");
      this.search.blur();
    }
  }

  private searchGroup(): HTMLElement {
    const before = button("\u2039", "previous match (shift n)", () => this.actions.step(-1));
    const next = button("\u203a", "next match (n)", () => this.actions.step(1));
    return group("pp-search", this.search, before, next, this.matchText);
  }

  private zoomGroup(): HTMLElement {
    const out = button("\u2212", "zoom out (-)", () => this.actions.zoomBy(0.5));
    const whole = button("All", "show everything (0)", () => this.actions.set({ span: null }));
    const closer = button("+", "zoom in (+)", () => this.actions.zoomBy(2));
    return group("pp-joined", out, whole, closer);
  }

  private showGroup(): HTMLElement {
    return group("pp-shown", this.scale, this.gaps, this.memory, this.critical, this.layout);
  }

  private saveGroup(): HTMLElement {
    const png = button("PNG", "save the view as PNG", () => this.actions.save("png"));
    const svg = button("SVG", "save the view as SVG", () => this.actions.save("svg"));
    const help = button("Keys", "keys and gestures (?)", () => this.actions.help());
    const rest = group("pp-rest", this.wheel, png, svg, this.theme, help);
    return group("pp-last", rest, this.more);
  }
}

function group(name: string, ...children: Node[]): HTMLElement {
  return make("div", { class: `pp-group ${name}`.trim(), role: "group" }, ...children);
}

function press(toggle: HTMLButtonElement, pressed: boolean, possible: boolean): void {
  toggle.setAttribute("aria-pressed", String(pressed));
  toggle.disabled = !possible;
}
