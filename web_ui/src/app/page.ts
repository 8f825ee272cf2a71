/** The whole page: compares again after every change, and shows the sentence, the timelines and the panels. */

import { make, part } from "../dom.js";
import { download as saveFile } from "../export.js";
import { INITIAL, type PageState } from "./address.js";
import * as api from "./api.js";
import { Banner } from "./banner.js";
import { Connection } from "./connection.js";
import { CopyLink } from "./copy_link.js";
import { Downloads } from "./downloads.js";
import type { FormFields } from "./fields.js";
import { FileDrop } from "./files.js";
import { Form } from "./form.js";
import { Latest } from "./latest.js";
import { PageLink } from "./page_link.js";
import type { Host } from "./panel.js";
import { PANELS } from "./panel_list.js";
import { Panels } from "./panels.js";
import { Picture } from "./picture.js";
import { Presets } from "./presets.js";
import { ScheduleList } from "./schedule_list.js";
import { SchedulesPanel } from "./schedules_panel.js";
import { Sheet } from "./sheet.js";
import { Tour } from "./tour.js";
import { settingsOf, type Typed, typedOf } from "./values.js";

/** Milliseconds after which the page marks a running comparison as busy. */
const LONG = 600;
/** Milliseconds after which a newer request cancels a running one, which may take half a minute. */
const TOO_LONG = 2000;

const AWAY = "The server is away. The page asks again every second, and goes on when it is back.";

export class Page implements Host {
  comparison: api.Comparison | null = null;
  readonly picture: Picture;
  private readonly form: Form;
  private readonly list = new ScheduleList(() => this.changed());
  private readonly drop = new FileDrop({
    config: (config) => this.useConfig(config),
    schedule: (file, shape) => {
      this.form.typed = { ...this.form.typed, ...typedOf(shape.settings, this.settings.fields) };
      this.visible = [file.name];
      this.list.add(file);
    },
  });
  private readonly schedules = new SchedulesPanel({
    only: (name) => this.show([name]),
    beside: (name, shows) => this.showBeside(name, shows),
  });
  private readonly panels: Panels;
  private readonly downloads = new Downloads(
    (format) => this.downloadAs(format),
    () => this.downloadSettings(),
  );
  private readonly presets = new Presets(
    (config) => this.usePreset(config),
    () => this.useConfig({ settings: INITIAL.typed, schedules: [], notes: [] }),
  );
  private readonly banner = new Banner("Out of date: see the message at ", (name) => this.focus(name));
  private readonly away = make("p", { class: "away", role: "status", hidden: true }, AWAY);
  private readonly sheet: Sheet;
  private readonly headline = make("h2", { class: "headline" }, "Comparing schedules\u2026");
  private readonly leftOut = make("p", { class: "note left-out", hidden: true });
  private readonly undrawn = make("p", { class: "note undrawn", hidden: true });
  private readonly answer = make("div", { class: "answer workbench", "data-panel": "", hidden: true });
  private readonly comparing = new Latest(() => this.answerAgain());
  private readonly connection = new Connection(
    () => this.lost(),
    () => this.back(),
  );
  private readonly link: PageLink;
  private loaded = false;
  /** Whether the comparison is that of the form; else only other timelines are requested. */
  private current = false;
  private visible: readonly string[] = [];
  private pending: { readonly since: number; readonly stop: AbortController } | null = null;

  constructor(private readonly settings: FormFields) {
    this.form = new Form(settings, () => this.changed());
    this.picture = new Picture(
      location.hash.slice(1),
      () => this.link.later(),
      () => this.schedules.draw(),
    );
    this.panels = new Panels([this.schedules, ...PANELS.map((makePanel) => makePanel(this))], () => {
      this.answer.dataset.panel = this.panels.open; // the open panel has its room beside the timeline
      this.link.later();
    });
    this.link = new PageLink(
      settings.fields,
      () => ({
        presets: this.presets.names,
        schedules: [...this.list.known, ...this.list.files.map(({ name }) => name)],
        panels: this.panels.names,
      }),
      () => ({
        state: this.state,
        more: this.panels.query(),
        rows: this.panels.editedText,
        fragment: this.picture.fragment,
      }),
      () => void this.restore(),
    );
    this.sheet = new Sheet(part("#controls"), [part("header"), part("main")]);
  }

  /** Restore the state of the address and request the first comparison. */
  async start(): Promise<void> {
    this.build();
    window.addEventListener("hashchange", () => {
      this.picture.fragment = location.hash.slice(1);
    });
    this.connection.watch();
    await this.load();
  }

  /** Load the lists of names, then restore the state. */
  private async load(): Promise<void> {
    try {
      const [schedules, formats, presets] = await Promise.all([api.schedules(), api.formats(), api.presets()]);
      this.presets.fill(presets);
      this.list.fill(schedules);
      this.downloads.fill(formats.filter((format) => format.written));
      this.drop.fill(formats.filter((format) => format.read));
      this.loaded = true;
      await this.restore();
    } catch (error) {
      this.fail(error);
    }
  }

  private build(): void {
    const { form, list, answer } = this;
    const tour = new Tour();
    const link = new CopyLink(
      () => this.link.write(),
      () => list.files.length > 0,
    );
    part("#actions").prepend(link.status, link.button, this.downloads.element, tour.opener);
    part("#controls").prepend(this.presets.element, this.drop.element, form.element);
    form.insert(list.element);
    const drawing = make("div", { class: "drawing" }, this.undrawn, this.picture.element);
    answer.append(drawing, this.sheet.opener, this.panels.element);
    const messages = [this.away, this.link.notices.element, this.banner.element];
    part("main").replaceChildren(...messages, this.headline, this.leftOut, answer, tour.element);
  }

  /** Restore the state of the browser's current entry. */
  private async restore(): Promise<void> {
    const read = await this.link.read().catch((error) => this.fail(error));
    if (read == null) return;
    const { state, rows } = read;
    this.presets.choose(state.preset ?? "");
    this.form.typed = state.typed;
    this.list.names = state.schedules;
    this.list.allow = state.allow;
    this.visible = state.visible;
    this.panels.restore(state.visible[0] ?? "", rows);
    this.panels.open = state.open;
    this.picture.fragment = location.hash.slice(1);
    this.link.restored();
    this.current = false;
    void this.comparing.request();
  }

  private get state(): PageState {
    const { form, list, visible, panels, presets } = this;
    return {
      preset: presets.chosen,
      typed: form.typed,
      schedules: list.selected,
      allow: list.allow,
      visible,
      open: panels.open,
    };
  }

  get drawn(): readonly string[] {
    return this.comparison?.drawn ?? [];
  }

  request(names: readonly string[] | null = null): api.CompareRequest {
    const selected = <T>(all: readonly T[], nameOf: (one: T) => string) =>
      names === null ? all : all.filter((one) => names.includes(nameOf(one)));
    return {
      settings: settingsOf(this.form.typed, this.settings.fields),
      allow: this.list.allow,
      schedules: names === null && this.list.isWhole ? [] : selected(this.list.names, (name) => name),
      files: selected(this.list.files, (file) => file.name),
    };
  }

  typed(field: string): string {
    return this.form.typed[field] ?? "";
  }

  type(field: string, text: string): void {
    this.form.typed = { ...this.form.typed, [field]: text };
    this.changed();
  }

  labelOf(field: string): string {
    return field === "schedules" ? "Schedules" : this.form.labelOf(field);
  }

  add(file: api.OwnFile): void {
    this.visible = [file.name];
    this.list.add(file);
  }

  open(panel: string, about = ""): void {
    this.panels.open = panel;
    if (about !== "") this.panels.about(about);
    this.link.later();
  }

  compareWith(name: string): void {
    this.list.names = [...this.list.names, name];
    this.show([name]);
  }

  show(names: readonly string[]): void {
    this.visible = names;
    this.link.later();
    void this.comparing.request();
  }

  remember(): void {
    this.link.later();
  }

  private changed(): void {
    this.current = false;
    this.link.later();
    const pending = this.pending;
    if (pending !== null) {
      const left = TOO_LONG - (performance.now() - pending.since);
      setTimeout(() => pending.stop.abort(), Math.max(left, 0));
    }
    void this.comparing.request();
  }

  /** Compare again if the form has changed; else request only the timelines to show. */
  private async answerAgain(): Promise<void> {
    if (!this.loaded) return;
    if (this.list.names.length + this.list.files.length === 0) {
      this.showFaults([{ field: "schedules", message: "choose at least one schedule" }]);
      return;
    }
    const stop = new AbortController();
    this.pending = { since: performance.now(), stop };
    const long = setTimeout(() => this.answer.setAttribute("aria-busy", "true"), LONG);
    const compares = !this.current;
    this.current = true;
    try {
      const comparison = compares ? await this.compare(stop.signal) : await this.draw(stop.signal);
      this.connection.answered();
      this.away.hidden = true;
      if (compares) this.showFaults(comparison.refused);
      this.showAnswer(comparison);
    } catch (error) {
      this.current = false;
      // After an abort, a newer request is already pending.
      if (!stop.signal.aborted) this.fail(error);
    } finally {
      clearTimeout(long);
      this.pending = null;
      this.answer.removeAttribute("aria-busy");
    }
  }

  private compare(signal: AbortSignal): Promise<api.Comparison> {
    return api.compare(this.request(), this.visible.length > 0 ? this.visible : null, signal);
  }

  /** Return the same comparison with the timelines that are to be shown. */
  private async draw(signal: AbortSignal): Promise<api.Comparison> {
    const { comparison } = this;
    if (comparison === null) return this.compare(signal);
    const known = new Set(comparison.results.map(({ schedule }) => schedule));
    const names = this.visible.filter((name) => known.has(name));
    const first = comparison.results[0].schedule;
    return { ...comparison, ...(await api.draw(this.request(names.length > 0 ? names : [first]), signal)) };
  }

  private showAnswer(comparison: api.Comparison): void {
    this.comparison = comparison;
    this.answer.hidden = false;
    this.headline.textContent = comparison.headline;
    this.leftOut.textContent = comparison.left_out;
    this.leftOut.hidden = comparison.left_out === "";
    const large = comparison.undrawn.join(", ");
    this.undrawn.textContent = `Too large to draw here: ${large}. Download the page or the picture.`;
    this.undrawn.hidden = large === "";
    this.picture.show(comparison.timeline);
    this.sheet.setLabel(summary(comparison, this.form.typed));
    this.panels.answered(comparison);
  }

  /** Say that the server is away; the page asks again until it is back. */
  private lost(): void {
    this.away.hidden = false;
    this.banner.clear();
    if (!this.current) this.answer.classList.add("stale");
  }

  private back(): void {
    this.away.hidden = true;
    if (!this.loaded) void this.load();
    else void this.comparing.request();
  }

  private fail(error: unknown): void {
    if (error instanceof api.Away) {
      this.connection.failed();
      return;
    }
    this.connection.answered();
    if (this.comparison === null) this.headline.textContent = "No comparison yet";
    const faults = error instanceof api.Refusal ? error.faults : [{ field: "", message: String(error) }];
    this.showFaults(faults, true);
  }

  /** Show each fault at its field and the others in the banner; without a new result, mark the old one as stale. */
  private showFaults(faults: readonly (api.Fault & { readonly schedule?: string })[], stale = false): void {
    const total = this.list.names.length + this.list.files.length;
    const common = stale || faults.length === total ? faults : faults.filter((fault) => fault.schedule === undefined);
    const left = this.form.fail(common);
    this.list.fail(textOf(left.filter((fault) => fault.field === "schedules")));
    const rest = left.filter((fault) => fault.field !== "schedules");
    const names = [...new Set(common.filter((fault) => !rest.includes(fault)).map((fault) => fault.field))];
    this.answer.classList.toggle("stale", stale || common.length > 0);
    if (rest.length > 0) this.banner.show(textOf(rest));
    else if (names.length > 0) this.banner.point(names.map((name) => ({ name, label: this.labelOf(name) })));
    else this.banner.clear();
  }

  /** Focus a field, and open what hides it. */
  private focus(name: string): void {
    this.sheet.reveal();
    if (name === "schedules") this.list.focus();
    else this.form.focus(name);
  }

  private showBeside(name: string, shows: boolean): void {
    const others = this.drawn.filter((other) => other !== name);
    this.show(shows ? [...others, name] : others);
  }

  private usePreset(config: api.Config): void {
    this.link.base = typedOf(config.settings, this.settings.fields);
    this.use(config);
  }

  private useConfig(config: api.Config): void {
    this.presets.choose("");
    this.link.base = {};
    this.use(config);
  }

  private use(config: api.Config): void {
    this.form.typed = typedOf(config.settings, this.settings.fields);
    if (config.schedules.length > 0) {
      this.list.names = [...new Set([...this.list.names, ...config.schedules])];
      this.visible = config.schedules;
    }
    this.changed();
  }

  private async downloadAs(format: api.Format): Promise<readonly string[]> {
    const names = format.several ? this.drawn : this.drawn.slice(0, 1);
    const { blob, name, warnings } = await api.download(this.request(names), format.name);
    saveFile(blob, name);
    return warnings;
  }

  private downloadSettings(): void {
    const { settings } = this.request();
    const [schedule] = this.drawn.filter((name) => this.list.names.includes(name));
    const config = schedule === undefined ? settings : { ...settings, schedule };
    saveFile(new Blob([`${JSON.stringify(config, null, 2)}\n`], { type: "application/json" }), "pipeplan.json");
  }
}

function textOf(faults: readonly (api.Fault & { readonly schedule?: string })[]): string {
  const texts = faults.map((fault) =>
    ["", "file", "schedules"].includes(fault.field) ? fault.message : `${fault.field}: ${fault.message}`,
  );
  return [...new Set(texts)].join("; ");
}

/** Return a summary of the current settings, for screens that hide the form. */
function summary({ results }: api.Comparison, typed: Typed): string {
  const [first] = results;
  if (first === undefined) return "Shape, costs and schedules";
  const limit = typed.memory_limit === undefined ? "" : `, limit ${typed.memory_limit}`;
  return `${first.ranks} ranks, ${first.microbatches} microbatches${limit}: change`;
}
