/** Kind of a dropped file: schedule or config. */

/** Suffixes of config files and profiles. */
export const CONFIGS: readonly string[] = [".yaml", ".yml", ".toml", ".json"];

/** Start of a JSON schedule or timeline: pipeplan's own format, its columns, or a profiler's trace. */
const SCHEDULE = /"format"\s*:\s*"pipeplan-(schedule|timeline)"|^\s*\{\s*"schedule"\s*:\s*\[|"traceEvents"/;

/** Return the last suffix of a file name: `.json` for `run.trace.json`. */
export function suffixOf(name: string): string {
  const dot = name.lastIndexOf(".");
  return dot < 0 ? "" : name.slice(dot).toLowerCase();
}

/** Test whether a file is a schedule, by its name, its first characters, and the suffixes of schedules; else it is a config. */
export function isSchedule(name: string, start: string, suffixes: ReadonlySet<string>): boolean {
  const suffix = suffixOf(name);
  if (!suffixes.has(suffix)) return false;
  return !CONFIGS.includes(suffix) || SCHEDULE.test(start);
}
