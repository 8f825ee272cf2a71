/** The whole page: compares again after every change and shows the result. */

import { make, part } from "../dom.js";
import { download as saveFile } from "../export.js";
import { fromQuery, INITIAL, type PageState, toQuery } from "./address.js";
import * as api from "./api.js";
import { Banner } from "./banner.js";
import { CopyLink } from "./copy_link.js";
import { Downloads } from "./downloads.js";
import type { FormFields } from "./fields.js";
import { FileDrop } from "./files.js";
import { Form } from "./form.js";
import { Latest } from "./latest.js";
import type { Host } from "./panel.js";
import { PANELS } from "./panel_list.js";
import { Panels } from "./panels.js";
import { Picture } from "./picture.js";
import { Presets } from "./presets.js";
import { ResultTable } from "./results.js";
import { ScheduleList } from "./schedule_list.js";
import { Sheet } from "./sheet.js";
import { Tour } from "./tour.js";
import { settingsOf, type Typed, typedOf } from "./values.js";

/** Milliseconds without a change before the address is written: browsers limit the rate of changes. */
const QUIET = 250;
/** Milliseconds after which the page marks a running comparison as busy. */
const LONG = 600;
/** Milliseconds after which a newer request cancels a running one, which may take half a minute. */
const TOO_LONG = 2000;

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
  private readonly table = new ResultTable({
    only: (name) => this.show([name]),
    beside: (name, shows) => this.showBeside(name, shows),
  });
  private readonly panels: Panels;
  private readonly downloads = new Downloads(
    (format) => this.downloadAs(format),
    () => this.downloadSettings(),
  );
  private readonly presets = new Presets(
    (config) => this.useConfig(config),
    () => this.useConfig({ settings: INITIAL.typed, schedules: [], notes: [] }),
  );
  private readonly banner = new Banner("Out of date: see the message at ", (name) => this.focus(name));
  private readonly sheet: Sheet;
  private readonly answer = make("div", { class: "answer" });
  private readonly comparing = new Latest(() => this.compare());
  private visible: readonly string[] = [];
  private waiting: ReturnType<typeof setTimeout> | undefined;
  private pending: { readonly since: number; readonly stop: AbortController } | null = null;

  constructor(private readonly settings: FormFields) {
    this.form = new Form(settings, () => this.changed());
    this.picture = new Picture(location.hash.slice(1), () => this.later());
    this.panels = new Panels(
      PANELS.map((makePanel) => makePanel(this)),
      () => this.later(),
    );
    this.sheet = new Sheet(part("#controls"), [part("header"), part("main")]);
  }

  /** Restore the state of the address and request the first comparison. */
  async start(): Promise<void> {
    this.build();
    try {
      const [schedules, formats, presets] = await Promise.all([api.schedules(), api.formats(), api.presets()]);
      this.presets.fill(presets);
      this.list.fill(schedules);
      this.downloads.fill(formats.filter((format) => format.written));
      this.drop.fill(formats.filter((format) => format.read));
    } catch (error) {
      this.fail(error);
      return;
    }
    this.use(fromQuery(location.search, this.settings.fields));
    window.addEventListener("popstate", () => this.use(fromQuery(location.search, this.settings.fields)));
    window.addEventListener("hashchange", () => {
      this.picture.fragment = location.hash.slice(1);
    });
  }

  private build(): void {
    const { form, list, answer } = this;
    const tour = new Tour();
    const link = new CopyLink(
      () => history.replaceState(null, "", this.address()),
      () => list.files.length > 0,
    );
    part("#actions").prepend(link.status, link.button, this.downloads.element, tour.opener);
    part("#controls").prepend(this.presets.element, this.drop.element, form.element);
    form.insert(list.element);
    answer.append(this.table.element, this.panels.element, this.picture.element);
    part("main").replaceChildren(this.sheet.opener, tour.element, this.banner.element, answer);
    tour.begin();
  }

  private use(state: PageState): void {
    this.form.typed = state.typed;
    this.list.names = state.schedules;
    this.list.allow = state.allow;
    this.visible = state.visible;
    this.panels.open = state.open;
    void this.comparing.request();
  }

  private get state(): PageState {
    const { form, list, visible, panels } = this;
    return { typed: form.typed, schedules: list.selected, allow: list.allow, visible, open: panels.open };
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
    this.later();
  }

  compareWith(name: string): void {
    this.list.names = [...this.list.names, name];
    this.show([name]);
  }

  show(names: readonly string[]): void {
    this.visible = names;
    this.changed();
  }

  remember(): void {
    this.later();
  }

  private changed(): void {
    this.later();
    const { pending } = this;
    if (pending !== null) {
      const left = TOO_LONG - (performance.now() - pending.since);
      setTimeout(() => pending.stop.abort(), Math.max(left, 0));
    }
    void this.comparing.request();
  }

  /** Write the address after a moment without changes. */
  private later(): void {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => history.replaceState(null, "", this.address()), QUIET);
  }

  private address(): string {
    const { fragment } = this.picture;
    return `?${toQuery(this.state, this.panels.query())}${fragment === "" ? "" : `#${fragment}`}`;
  }

  private async compare(): Promise<void> {
    const request = this.request();
    if (this.list.names.length + this.list.files.length === 0) {
      this.showFaults([{ field: "schedules", message: "choose at least one schedule" }]);
      return;
    }
    const stop = new AbortController();
    this.pending = { since: performance.now(), stop };
    const long = setTimeout(() => this.answer.setAttribute("aria-busy", "true"), LONG);
    try {
      const comparison = await api.compare(request, this.visible.length > 0 ? this.visible : null, stop.signal);
      this.comparison = comparison;
      this.showFaults(comparison.refused);
      this.table.show(comparison);
      this.picture.show(comparison.timeline);
      this.sheet.setLabel(summary(comparison, this.form.typed));
      this.panels.answered(comparison);
    } catch (error) {
      // After an abort, a newer request is already pending.
      if (!stop.signal.aborted) this.fail(error);
    } finally {
      clearTimeout(long);
      this.pending = null;
      this.answer.removeAttribute("aria-busy");
    }
  }

  private fail(error: unknown): void {
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

  private useConfig(config: api.Config): void {
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
