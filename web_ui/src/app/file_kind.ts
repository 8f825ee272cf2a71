/** Kind of a dropped file: schedule or config. */

/** The endings of config files and profiles. */
export const CONFIGS: readonly string[] = [".yaml", ".yml", ".toml", ".json"];

/** Start of JSON that holds a schedule or a timeline: pipeplan's own, its columns, a profiler's trace. */
const SCHEDULE = /"format"\s*:\s*"pipeplan-(schedule|timeline)"|^\s*\{\s*"schedule"\s*:\s*\[|"traceEvents"/;

/** The last part of a name: `.json` of `run.trace.json`. */
export function suffixOf(name: string): string {
  const dot = name.lastIndexOf(".");
  return dot < 0 ? "" : name.slice(dot).toLowerCase();
}

/** Test whether a file is a schedule, by its name, its first characters, and the suffixes of schedules; else it is a config. */
export function holdsSchedule(name: string, start: string, suffixes: ReadonlySet<string>): boolean {
  const suffix = suffixOf(name);
  if (!suffixes.has(suffix)) return false;
  return !CONFIGS.includes(suffix) || SCHEDULE.test(start);
}
