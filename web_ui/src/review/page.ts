/** The review page: the text to review; after a review the sentence, the text with its findings, and the patch come first. */

import { type Fault, Refusal } from "../app/api.js";
import { Banner } from "../app/banner.js";
import type { FormFields } from "../app/fields.js";
import { Form } from "../app/form.js";
import { Sheet } from "../app/sheet.js";
import { settingsOf } from "../app/values.js";
import { make, onDrop, part } from "../dom.js";
import { type Review, type Reviewed, review } from "./api.js";
import { ClusterQuestion } from "./ask.js";
import { listing } from "./listing.js";
import { PatchView } from "./patch.js";
import { changes, estimate, questions } from "./summary.js";

/** Maximum length of a text; the server has the same limit. */
const MOST_LETTERS = 1024 * 1024;

const EXAMPLE = `PP=8
torchrun --nproc-per-node 8 --nnodes 16 pretrain_gpt.py \\
  --num-layers 94 --hidden-size 4096 --num-attention-heads 64 \\
  --group-query-attention --num-query-groups 4 --seq-length 4096 \\
  --tensor-model-parallel-size 4 --sequence-parallel \\
  --pipeline-model-parallel-size $PP \\
  --micro-batch-size 1 --global-batch-size 256 \\
  --use-distributed-optimizer --bf16
`;

export class ReviewPage {
  private readonly form: Form;
  private readonly text = make("textarea", {
    id: "field-text",
    rows: 14,
    spellcheck: "false",
    autocapitalize: "off",
    wrap: "off",
    "aria-describedby": "text-hint text-error",
  });
  private readonly file = make("input", { type: "file", id: "field-file" });
  private readonly name = make("span", { class: "hint", role: "status" });
  private readonly error = make("p", { class: "error", id: "text-error", role: "alert", hidden: true });
  private readonly submit = make("button", { type: "button", class: "button primary" }, "Review");
  private readonly banner = new Banner("See the message at ", (name) => this.focus(name));
  private readonly sheet = new Sheet(part("#controls"), [part("header"), part("main")]);
  private readonly answer = make("div", { class: "answer", hidden: true });
  private readonly headline = make("h2", { tabindex: -1 });
  private readonly question: ClusterQuestion;
  private readonly body = make("div");
  /** The text; folded after a review, whose listing shows the text as well. */
  private readonly source = make("details", { class: "source", open: true }, make("summary", {}, "Text to review"));
  private readonly patch = new PatchView();
  private fileName = "";
  private running: AbortController | null = null;

  constructor(private readonly fields: FormFields) {
    this.form = new Form(fields, () => undefined);
    const cluster = fields.fields.find(({ name }) => name === "cluster");
    this.question = new ClusterQuestion(cluster, (text) => {
      this.form.typed = { ...this.form.typed, cluster: text };
      void this.requestReview();
    });
  }

  start(): void {
    const hint = make(
      "p",
      { class: "hint", id: "text-hint" },
      "A launch script, a recipe in Python, YAML, TOML, JSON, the arguments in a log, or a layout string. Nothing in it is executed.",
    );
    const choose = make("label", { for: "field-file", class: "button" }, "Choose a file");
    this.text.value = EXAMPLE;
    this.text.addEventListener("input", () => this.fileName === "" || this.setFileName(""));
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void this.requestReview();
    });
    this.file.addEventListener("change", () => {
      void this.take(this.file.files?.[0]);
      this.file.value = "";
    });
    this.submit.addEventListener("click", () => void this.requestReview());
    this.form.element.addEventListener("submit", () => void this.requestReview());
    onDrop(([file]) => this.take(file));
    part("#controls").prepend(this.form.element);
    this.source.append(
      make("label", { for: "field-text" }, "Configuration to review"),
      hint,
      this.text,
      this.error,
      make("div", { class: "tabs" }, this.submit, this.file, choose, this.name),
    );
    this.answer.append(this.headline, this.question.element, this.body, this.patch.element);
    this.sheet.setLabel("Trainer, model and cluster");
    part("main").replaceChildren(this.sheet.opener, this.banner.element, this.answer, this.source);
  }

  private async take(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    if (file.size > MOST_LETTERS) {
      this.fail([{ field: "content", message: `${file.name} is larger than 1 MiB` }]);
      return;
    }
    this.text.value = await file.text();
    this.setFileName(file.name.slice(-80));
    await this.requestReview();
  }

  /** Store the name of the file, whose suffix determines its format; an edited text has no name. */
  private setFileName(name: string): void {
    this.fileName = name;
    this.name.textContent = name;
  }

  private async requestReview(): Promise<void> {
    this.running?.abort();
    const controller = new AbortController();
    this.running = controller;
    this.fail([]);
    this.sheet.close();
    this.answer.classList.add("stale");
    const text = this.text.value;
    try {
      const settings = settingsOf(this.form.typed, this.fields.fields);
      const result = await review(
        settings,
        { name: this.fileName === "" ? "pasted" : this.fileName, text },
        controller.signal,
      );
      this.show(result, text);
      this.headline.focus();
    } catch (error) {
      if (this.running === controller) this.fail(faultsOf(error));
    }
  }

  private show(result: Review, text: string): void {
    this.answer.hidden = false;
    this.answer.classList.remove("stale");
    this.headline.textContent = result.headline;
    this.question.show(result, this.form.typed.cluster ?? "");
    this.source.open = false;
    const [only] = result.configurations;
    const parts =
      result.configurations.length === 1 && only !== undefined
        ? [estimate(only), ...changes(only), ...this.judged(only)]
        : [];
    this.body.replaceChildren(make("h3", {}, "Findings"), listing(text, result.findings), ...parts);
    this.patch.show(result.patch);
  }

  /** Return how far each question was answered, with links to the fields that state what is missing. */
  private judged(reviewed: Reviewed): HTMLElement[] {
    return questions(
      reviewed,
      (field) => this.form.labelOf(field).toLowerCase(),
      (field) => {
        if (field !== "cluster" || !this.question.focus()) this.focus(field);
      },
    );
  }

  private focus(name: string): void {
    this.sheet.reveal();
    this.form.focus(name);
  }

  /** Show each fault at its field, and the others in the banner. */
  private fail(faults: readonly Fault[]): void {
    const own = faults.filter(({ field }) => field === "content" || field === "name");
    this.error.textContent = own.map(({ message }) => message).join("; ");
    this.error.hidden = own.length === 0;
    this.text.setAttribute("aria-invalid", String(own.length > 0));
    const others = faults.filter((fault) => !own.includes(fault));
    const remaining = this.form.fail(others);
    const marked = others.filter((fault) => !remaining.includes(fault)).map(({ field }) => field);
    const [first] = marked;
    if (remaining.length > 0) this.banner.show(remaining.map(({ message }) => message).join("; "));
    else if (first === undefined) this.banner.clear();
    else this.banner.point([...new Set(marked)].map((name) => ({ name, label: this.form.labelOf(name) })));
    if (faults.length > 0) this.source.open = true;
    if (own.length > 0) this.text.focus();
    else if (first !== undefined) this.focus(first);
    if (faults.length > 0) this.answer.hidden = true;
  }
}

function faultsOf(error: unknown): readonly Fault[] {
  if (error instanceof Refusal) return error.faults;
  return [{ field: "", message: error instanceof Error ? error.message : String(error) }];
}
