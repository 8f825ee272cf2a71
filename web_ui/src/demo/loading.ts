/** Precomputed data, loaded on demand as scripts that call `pipeplanDemo`, which also works from local files. */

import type { TimelineData } from "../data.js";
import { make } from "../dom.js";
import type { ComparisonFacts } from "../records.js";

export interface Computed {
  readonly facts: ComparisonFacts;
  readonly views: readonly string[];
  readonly themes: TimelineData["themes"];
}

declare global {
  var pipeplanDemo: (key: string, data: Computed) => void;
}

const cache = new Map<string, Promise<Computed>>();
const arrived = new Map<string, Computed>();

globalThis.pipeplanDemo = (key, data) => arrived.set(key, data);

/** Return the comparison of a name, which is loaded once. */
export function loaded(key: string): Promise<Computed> {
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const comparison = load(key);
  cache.set(key, comparison);
  comparison.catch(() => cache.delete(key));
  return comparison;
}

function load(key: string): Promise<Computed> {
  return new Promise((resolve, reject) => {
    const script = make("script", { src: `data/${key}.js` });
    script.addEventListener("load", () => {
      const data = arrived.get(key);
      arrived.delete(key);
      script.remove();
      if (data === undefined) reject(new Error(`data/${key}.js has unexpected content`));
      else resolve(data);
    });
    script.addEventListener("error", () => {
      script.remove();
      reject(new Error(`data/${key}.js cannot be loaded`));
    });
    document.head.append(script);
  });
}
