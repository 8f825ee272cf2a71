/** Question for the cluster above the findings, if rules could not be judged without it. */

import type { Field } from "../app/fields.js";
import { make } from "../dom.js";
import type { Review } from "./api.js";
import { fieldOf } from "./summary.js";

/** Option of the cluster. */
const CLUSTER = "cluster";

/** Return the number of rules that were not judged because the cluster is not stated. */
export function rulesWithout(field: string, { questions }: Pick<Review, "questions">): number {
  const missing = questions.flatMap((question) => question.missing);
  return missing.filter((fact) => fieldOf(fact) === field).reduce((sum, { rules }) => sum + rules, 0);
}

export class ClusterQuestion {
  readonly element = make("form", { class: "cluster-question", hidden: true, autocomplete: "off" });
  private readonly input: HTMLInputElement;
  private readonly why = make("p");

  /** `answer` receives the cluster; `field` has the known clusters. */
  constructor(field: Field | undefined, answer: (cluster: string) => void) {
    const known = field?.suggestions ?? [];
    this.input = make("input", {
      type: "text",
      id: "cluster-of-review",
      list: "known-clusters",
      placeholder: "h100-sxm:8x16",
      spellcheck: "false",
      required: true,
      "aria-describedby": "cluster-form",
    });
    const label = make("label", { for: "cluster-of-review" }, "Cluster");
    const hint = make("span", { class: "hint", id: "cluster-form" }, "GPU:PER_NODExNODES");
    const submit = make("button", { type: "submit", class: "button primary" }, "Review with it");
    const list = make("datalist", { id: "known-clusters" }, ...known.map((value) => make("option", { value })));
    this.element.append(this.why, make("div", { class: "tabs" }, label, this.input, submit, hint, list));
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      answer(this.input.value.trim());
    });
  }

  /** Ask if rules could not be judged; return whether the question is visible. */
  show(review: Review, cluster: string): void {
    const rules = rulesWithout(CLUSTER, review);
    this.element.hidden = rules === 0;
    this.input.value = cluster;
    const not = rules === 1 ? "1 rule was not judged" : `${rules} rules were not judged`;
    this.why.textContent = `On which cluster does it run? ${not}, because the text does not state it.`;
  }

  /** Focus the field if the question is visible; return whether it is. */
  focus(): boolean {
    if (this.element.hidden) return false;
    this.element.scrollIntoView({ block: "nearest" });
    this.input.focus();
    return true;
  }
}
