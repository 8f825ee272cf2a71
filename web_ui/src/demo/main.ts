/** The interactive demo: comparisons for selectable shapes and costs, computed when the site is built. */

import "../report/report.css";
import "./demo.css";
import { writeAddress } from "../address_bar.js";
import { make } from "../dom.js";
import { ComparisonView } from "../report/comparison.js";
import { openerOf } from "../report/timelines.js";
import { type Choice, type Choices, commandOf, fileOf, first, fromFragment, toParts } from "./choices.js";
import { Command } from "./command.js";
import { Controls } from "./controls.js";
import { type Computed, loaded } from "./loading.js";

class Demo {
  private choice: Choice;
  private readonly controls: Controls;
  private readonly command: Command;
  private readonly view: ComparisonView;
  private readonly trouble = make("p", { class: "pr-empty", role: "alert", hidden: true });
  private current: Computed | null = null;
  private waiting: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly place: HTMLElement,
    private readonly choices: Choices,
  ) {
    this.choice = fromFragment(location.hash, choices);
    this.controls = new Controls(choices, this.choice, (choice) => this.choose(choice));
    this.command = new Command(choices.version);
    this.view = new ComparisonView(location.hash, () => this.moved(), this.command.element);
    this.view.element.hidden = true; // nothing moves when the first comparison comes
    place.append(this.controls.element, this.trouble, this.view.element);
    window.addEventListener("hashchange", () => this.follow());
    document.addEventListener("keydown", (event) => {
      if (event.target === document.body) this.view.timelines.timeline?.typed(event);
    });
    void this.load();
  }

  private choose(choice: Choice): void {
    this.choice = choice;
    void this.load();
  }

  private follow(): void {
    this.choice = fromFragment(location.hash, this.choices);
    this.controls.show(this.choice);
    this.view.setFragment(location.hash);
    void this.load();
  }

  /** Load the comparison of the current choice; of several choices the last one counts. */
  private async load(): Promise<void> {
    const { choice } = this;
    this.place.setAttribute("aria-busy", "true");
    try {
      const computed = await loaded(fileOf(choice));
      if (choice !== this.choice) return;
      this.show(computed);
      this.trouble.hidden = true;
    } catch (error) {
      if (choice !== this.choice) return;
      this.trouble.textContent = `${error instanceof Error ? error.message : error}.`;
      this.trouble.hidden = false;
    }
    this.place.removeAttribute("aria-busy");
  }

  private show(computed: Computed): void {
    const { facts, views, themes } = computed;
    if (this.current !== null && this.current.facts.memory_unit !== facts.memory_unit) this.view.unlimit();
    this.current = computed;
    const open = openerOf(facts.rows, views);
    this.view.element.hidden = false;
    this.view.show({ comparison: facts, open, themes });
    this.moved();
  }

  /** Update the command and, after a moment without changes, the address. */
  private moved(): void {
    if (this.current === null) return;
    this.command.show(commandOf(this.choice, this.choices, this.current.facts, this.view.limitNow));
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.keepAddress(), 150);
  }

  private keepAddress(): void {
    const begins = fileOf(this.choice) === fileOf(first(this.choices));
    const own = begins ? "" : toParts(this.choice).toString();
    const fragment = [own, this.view.fragment].filter(Boolean).join("&");
    writeAddress(fragment);
  }
}

const holder = document.getElementById("pipeplan-choices");
const place = document.getElementById("pipeplan-demo");
if (holder !== null && place !== null) new Demo(place, JSON.parse(holder.textContent ?? "") as Choices);
