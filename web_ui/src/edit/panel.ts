/** The editor of a schedule: a timeline to drag ops in, a text to type in, and the verdict on the schedule. */

import "./edit.css";
import { LONGEST } from "../app/address.js";
import { type Comparison, download, type Result } from "../app/api.js";
import { Latest } from "../app/latest.js";
import type { Host, Panel } from "../app/panel.js";
import type { EditMarks } from "../data.js";
import { make } from "../dom.js";
import { download as saveFile } from "../export.js";
import type { Editing, Move, mountTimeline, orderFragment, State, Timeline, TimelineData } from "../index.js";
import { LONGEST_LINK } from "../order/coding.js";
import { fromFragment } from "../state.js";
import * as api from "./api.js";
import { Area } from "./area.js";
import { BarPlaces } from "./bars.js";
import { figures } from "./figures.js";
import { Session } from "./session.js";
import { EditToolbar } from "./toolbar.js";
import { VerdictView } from "./verdict.js";
import { linesOf, opsOf, type Place, withMoved, wordsOf } from "./words.js";

/** The timeline's own script, which every page with a timeline loads. */
declare const pipeplan: { readonly mountTimeline: typeof mountTimeline; readonly orderFragment: typeof orderFragment };

/** Milliseconds without typing after which the text is checked. */
const QUIET = 160;
/** Milliseconds after which a pending verdict is shown as pending. */
const LONG = 400;
/** Maximum length of a text whose change is explained; for longer ones this takes as long as the verdict. */
const MOST_EXPLAINED = 150_000;
/** Maximum length of a text in the page's address, in addition to the settings. */
const MOST_REMEMBERED = 4000;
const EMPTY = "";

export class EditPanel implements Panel {
  readonly name = "edit";
  readonly title = "Edit";
  readonly element = make("section", { class: "edit" });
  private readonly select = make("select", { "aria-label": "the schedule to edit" });
  private readonly toolbar = new EditToolbar({
    undo: () => this.step(this.session?.history.undo() ?? null),
    redo: () => this.step(this.session?.history.redo() ?? null),
    reset: () => this.change(this.session?.original ?? "", null, false),
    shift: (by) => this.shift(by),
    copy: () => navigator.clipboard.writeText(this.area.text),
    link: () => this.copyLink(),
    compare: () => this.compare(),
    search: () => this.search(),
    download: (format) => this.download(format),
  });
  private readonly verdicts = new VerdictView((place) => this.look(place, true));
  private readonly figures = make("div", { class: "scroll" });
  private readonly picture = make("div", { class: "timeline" });
  private readonly area = new Area({
    typed: (text, place) => this.change(text, place, true),
    pointed: (place) => this.choose(place, "text"),
    pressed: (event) => this.pressed(event),
  });
  private readonly judging = new Latest(() => this.judge());
  private readonly editing: Editing = {
    canGrab: (op) => this.places?.placeOf(op.bar) != null && !this.picture.classList.contains("stale"),
    moved: (move) => this.moved(move),
  };
  private session: Session | null = null;
  private timeline: Timeline | null = null;
  private places: BarPlaces | null = null;
  private marks: EditMarks | null = null;
  private verdict: api.Verdict | null = null;
  private selected: Place | null = null;
  private pointing = false;
  private beginning = 0;
  /** Sessions of previously edited schedules by name. */
  private readonly sessions = new Map<string, Session>();
  private waiting: ReturnType<typeof setTimeout> | undefined;
  /** Text of the address or of the browser's history, until the next session uses it. */
  private pendingRows: string | null = null;

  constructor(private readonly host: Host) {
    this.select.addEventListener("change", () => void this.begin(this.select.value));
    this.element.addEventListener("keydown", (event) => {
      if (this.undoes(event)) event.preventDefault();
    });
    const head = make("div", { class: "edit-head" }, make("h2", {}, "Edit"), this.select);
    const hint =
      "One line per rank; an op is stage, kind, microbatch (2F0). Drag an op in the picture, or select one and press alt with left or right.";
    this.element.append(
      head,
      this.toolbar.element,
      make("div", { class: "edit-answer" }, this.verdicts.element, this.figures),
      this.picture,
      this.area.element,
      make("p", { class: "hint" }, hint),
    );
  }

  toggled(open: boolean): void {
    // The editor's picture replaces the page's picture, which shows the unedited schedule.
    this.host.picture.element.classList.toggle("replaced", open);
    if (!open) return;
    void this.toolbar.fill().catch(() => undefined);
    this.offer();
    const name = this.session?.edited === true ? this.session.name : (this.host.drawn[0] ?? "");
    if (this.session?.edited === true) this.again();
    else if (name !== "") void this.begin(name);
    this.update();
  }

  answered(_: Comparison, open: boolean): void {
    this.offer();
    if (!open) return;
    if (this.session?.edited === true) this.again();
    else void this.begin(this.session?.name ?? this.host.drawn[0] ?? "");
  }

  /** The edited text, which a reload of the page restores. */
  query(): Readonly<Record<string, string>> {
    const { session, pendingRows: rows } = this;
    if (rows !== null && rows.length <= MOST_REMEMBERED) return { rows };
    if (session === null || !session.edited || session.text.length > MOST_REMEMBERED) return {};
    return session.original === "" ? { rows: session.text } : { rows: session.text, show: session.name };
  }

  /** The edited text for the browser's history, whose entries are longer than an address. */
  editedText(): string | null {
    return this.pendingRows ?? (this.session?.edited === true ? this.session.text : null);
  }

  restore(schedule: string, rows: string | null): void {
    const { session } = this;
    this.pendingRows = rows;
    if (session === null || (rows !== null && schedule !== "" && schedule !== session.name)) {
      if (session !== null) void this.begin(schedule);
      return;
    }
    this.pendingRows = null;
    this.beginning += 1; // a schedule that has yet to arrive belongs to another entry
    if ((rows ?? session.original) === session.text) return;
    session.history.goTo(rows ?? session.original);
    this.area.text = session.text;
    this.update();
    void this.judging.request();
  }

  /** Offer every schedule of the comparison. */
  private offer(): void {
    const names = (this.host.comparison?.results ?? []).map((result) => result.schedule);
    const own = this.session?.name ?? "";
    const all = own === "" || names.includes(own) || this.session?.original === "" ? names : [own, ...names];
    this.select.replaceChildren(
      ...all.map((name) => make("option", { value: name }, name)),
      make("option", { value: EMPTY }, "empty text"),
    );
    if (this.session !== null) this.select.value = this.session.original === "" ? EMPTY : own;
  }

  /** Begin with a schedule of the comparison, or with an empty text; an edit made before it arrives is kept instead. */
  private async begin(name: string): Promise<void> {
    this.beginning += 1;
    const turn = this.beginning;
    const text = this.session?.text;
    const saved = this.sessions.get(name);
    if (this.session?.edited === true)
      this.sessions.set(this.session.original === "" ? EMPTY : this.session.name, this.session);
    if (saved !== undefined && saved !== this.session) {
      this.use(saved);
      this.again();
      return;
    }
    try {
      const session = name === EMPTY ? Session.empty() : Session.of(await api.begin(this.host.request([name])));
      if (turn !== this.beginning) return;
      if (this.session?.text === text) {
        this.use(session);
        return;
      }
      this.offer();
      this.again();
    } catch (error) {
      if (turn === this.beginning) this.fail(error);
    }
  }

  private use(session: Session): void {
    this.session = session;
    this.choose(null, "none");
    if (this.pendingRows !== null) session.history.goTo(this.pendingRows);
    this.pendingRows = null;
    this.area.text = session.text;
    this.offer();
    void this.judging.request();
  }

  /** Check the same text with other costs. */
  private again(): void {
    if (this.session !== null) {
      this.session.baseline = null;
      this.session.before = null;
    }
    void this.judging.request();
  }

  private change(text: string, place: Place | null, typed: boolean): void {
    const { session } = this;
    if (session === null || text === session.text) return;
    session.history.add(text, place, typed, performance.now());
    if (!typed) this.area.text = text;
    this.update();
    clearTimeout(this.waiting);
    if (typed) this.waiting = setTimeout(() => void this.judging.request(), QUIET);
    else void this.judging.request();
  }

  private step(step: { readonly text: string; readonly place: Place | null } | null): void {
    if (step === null) return;
    this.area.text = step.text;
    this.update();
    if (step.place !== null) this.look(step.place, this.area.element.contains(document.activeElement));
    void this.judging.request();
  }

  private async judge(): Promise<void> {
    const { session } = this;
    if (session === null) return;
    const { text } = session;
    const settings = api.costsOf(this.host.request([]).settings);
    const { name, shape } = session;
    const judge = (rows: string, before: string | null, draw: boolean) =>
      api.judge({ settings, name: draw ? `edited ${name}`.slice(0, 80) : name, rows, shape, before, draw });
    const long = setTimeout(() => this.verdicts.wait(), LONG);
    try {
      if (session.baseline === null && session.edited && session.original !== "") {
        session.baseline = (await judge(session.original, null, false)).result;
        session.before ??= session.original;
      }
      const explained = session.before !== null && session.before !== text && text.length <= MOST_EXPLAINED;
      const verdict = await judge(text, explained ? session.before : null, true);
      if (session === this.session && text === session.text) this.show(session, verdict);
    } catch (error) {
      if (session === this.session) this.fail(error);
    } finally {
      clearTimeout(long);
    }
  }

  private show(session: Session, verdict: api.Verdict): void {
    this.verdict = verdict;
    if (verdict.valid) session.before = session.text;
    if (verdict.valid && !session.edited) session.baseline = verdict.result;
    this.verdicts.show(verdict, session.edited);
    this.compareWith(verdict.result, session);
    this.draw(session, verdict);
    const placesOf = (flaws: readonly api.Flaw[]) =>
      flaws.flatMap((flaw) => flaw.places.map(([line, word]) => ({ line, word })));
    this.area.mark({ wrong: placesOf(verdict.flaws), over: placesOf(verdict.over), lit: this.selected }, session.rows);
    this.update();
    this.host.remember();
    this.element.dataset.judged = String(Number(this.element.dataset.judged ?? 0) + 1);
  }

  private compareWith(result: Result | null, session: Session): void {
    this.figures.replaceChildren(figures(result, session.baseline));
    this.figures.hidden = result === null && session.baseline === null;
  }

  private draw(session: Session, { timeline: data, stopped, flaws, over, valid }: api.Verdict): void {
    const tooLarge = valid && data === null;
    this.picture.hidden = tooLarge || (data === null && this.timeline === null);
    this.picture.classList.toggle("stale", data === null);
    if (data === null) return;
    const [view] = data.views;
    this.places = new BarPlaces(view, linesOf(session.text), session.rows);
    const places = [...flaws, ...over].flatMap((flaw) => flaw.places.map(([line, word]) => ({ line, word })));
    const waiting = (stopped?.waiting ?? []).flatMap((wait) => wait.places.map(([line, word]) => ({ line, word })));
    const lit = this.selected === null ? -1 : this.places.barOf(this.selected);
    this.marks = { until: stopped?.until ?? null, wrong: this.places.barsOf([...places, ...waiting]), lit };
    view.judged = this.marks;
    this.mount(data);
  }

  private mount(data: TimelineData): void {
    if (this.timeline !== null) {
      this.timeline.update(data);
      return;
    }
    const { theme, memory } = fromFragment(this.host.picture.fragment);
    this.timeline = pipeplan.mountTimeline(this.picture, data, {
      editing: this.editing,
      onSelect: (op) => this.selectOp(op),
      onFragment: (fragment) => this.host.picture.timeline?.set({ theme: fromFragment(fragment).theme }),
    });
    this.timeline.set({ theme, memory });
  }

  private fail(error: unknown): void {
    this.verdicts.fail(error instanceof Error ? error.message : String(error));
    this.picture.classList.add("stale");
  }

  private update(): void {
    const { session } = this;
    if (session === null) {
      this.toolbar.update({ undo: false, redo: false, reset: false, op: "", valid: false });
      return;
    }
    this.toolbar.update({
      undo: session.history.canUndo,
      redo: session.history.canRedo,
      reset: session.edited,
      op: this.selected === null ? "" : this.wordAt(this.selected),
      valid: this.verdict?.valid === true && session.text !== "",
    });
  }

  private wordAt({ line, word }: Place): string {
    return wordsOf(linesOf(this.session?.text ?? "")[line] ?? "")[word]?.text ?? "";
  }

  /** Move a word after its op was dragged, or moved by keys, in the picture. */
  private moved({ op, to }: Move): void {
    const place = this.places?.placeOf(op.bar) ?? null;
    const word = this.places?.wordFor(op.bar, op.rank, to) ?? null;
    if (place === null || word === null) return;
    // The text may be ahead of the picture while a key repeats.
    const now = wordsOf(linesOf(this.area.text)[place.line] ?? "").findIndex(({ text }) =>
      opsOf(text).includes(op.name),
    );
    if (now >= 0) this.place({ line: place.line, word: now }, now + word - place.word);
  }

  private shift(by: number): void {
    if (this.selected !== null) this.place(this.selected, this.selected.word + by);
  }

  /** Move a word to another position of its line. */
  private place(from: Place, to: number): void {
    const lines = linesOf(this.area.text);
    const count = wordsOf(lines[from.line] ?? "").length;
    if (to < 0 || to >= count || to === from.word) {
      this.toolbar.showMessage(to === from.word ? "" : "it is at the end of its rank already");
      return;
    }
    const place = { line: from.line, word: to };
    lines[from.line] = withMoved(lines[from.line], from.word, to);
    this.selected = place;
    this.change(lines.join("\n"), place, false);
    this.look(place, this.area.element.contains(document.activeElement));
  }

  /** Select a word in the text, and its op in the picture. */
  private look(place: Place, focus: boolean): void {
    this.choose(place, "none");
    this.pointing = true;
    this.area.go(place, focus);
    this.pointing = false;
  }

  /** Select the word of an op that is selected in the picture. */
  private selectOp(op: State["op"]): void {
    if (this.pointing) return;
    this.choose(op === null ? null : (this.places?.placeOfName(op.name) ?? null), "picture");
  }

  /** Highlight the selected op in the text and in the picture, without scrolling the part `where` it was selected. */
  private choose(place: Place | null, where: "text" | "picture" | "none"): void {
    if (this.pointing && where === "text") return;
    this.selected = place;
    const rows = this.session?.rows ?? [];
    const flaws = this.verdict?.flaws ?? [];
    if (where !== "text") {
      const wrong = flaws.flatMap((flaw) => flaw.places.map(([line, word]) => ({ line, word })));
      this.area.mark({ wrong, over: [], lit: place }, rows);
    }
    this.pointing = true;
    this.light();
    if (where === "picture" && place !== null) this.area.go(place, false);
    this.pointing = false;
    this.update();
  }

  /** Outline the selected op in the picture. */
  private light(): void {
    if (this.marks === null) return;
    const bar = this.selected === null ? -1 : (this.places?.barOf(this.selected) ?? -1);
    if (bar === this.marks.lit) return;
    this.marks.lit = bar;
    this.timeline?.set({});
  }

  private pressed(event: KeyboardEvent): boolean {
    if (event.altKey && !event.ctrlKey && !event.metaKey && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
      this.selected = this.area.place;
      this.shift(event.key === "ArrowLeft" ? -1 : 1);
      return true;
    }
    return false;
  }

  private undoes(event: KeyboardEvent): boolean {
    const key = event.key.toLowerCase();
    if (!(event.ctrlKey || event.metaKey) || event.altKey || !["z", "y"].includes(key)) return false;
    const { history } = this.session ?? {};
    this.step((key === "y" || event.shiftKey ? history?.redo() : history?.undo()) ?? null);
    return true;
  }

  private compare(): void {
    const { session } = this;
    if (session === null) return;
    this.host.add({ name: session.fileName, text: session.text });
    this.toolbar.showMessage(`${session.fileName} joins the comparison`);
  }

  private search(): void {
    if (this.session === null) return;
    this.compare();
    this.host.open("search", this.session.fileName);
  }

  /** Download the edited schedule; returns the warnings about the file. */
  private async download(format: string): Promise<readonly string[]> {
    const { session } = this;
    if (session === null) return [];
    const files = [{ name: session.fileName, text: session.text }];
    const settings = api.costsOf(this.host.request([]).settings);
    const { blob, name, warnings } = await download({ settings, allow: [], schedules: [], files }, format);
    saveFile(blob, name);
    return warnings;
  }

  /** Copy the address of the page that shows this order by itself; of a text that does not run, the address of this page. */
  private async copyLink(): Promise<void> {
    const data = this.verdict?.valid === true ? this.verdict.timeline : null;
    const fragment = data === null ? null : await pipeplan.orderFragment(data);
    if (fragment !== null) {
      const page = new URL(`/order#${fragment}`, location.href);
      if (page.href.length > LONGEST_LINK) throw new Error(tooLong(page.href.length));
      await navigator.clipboard.writeText(page.href);
      return;
    }
    const address = new URL(location.href);
    address.searchParams.set("open", this.name);
    address.searchParams.set("rows", this.area.text);
    if (this.session !== null && this.session.original !== "") address.searchParams.set("show", this.session.name);
    if (address.href.length > LONGEST) throw new Error(tooLong(address.href.length));
    await navigator.clipboard.writeText(address.href);
  }
}

function tooLong(length: number): string {
  return `too long for a link (${length.toLocaleString("en")} characters): download the interactive page instead`;
}
