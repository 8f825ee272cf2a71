// Bundles src into the files that the Python package carries, with the licences of what they contain. The same sources
// and the locked tools give the same bytes, so CI rebuilds them (`--check`) and fails on a difference.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The timeline defines `pipeplan`, which the pages of the web app use. */
const BUNDLES = [
  {
    name: "timeline",
    entry: "src/index.ts",
    folder: here("../src/pipeplan/drawing/html/assets/"),
    globalName: "pipeplan",
  },
  { name: "report", entry: "src/report/main.ts", folder: here("../src/pipeplan/drawing/html/assets/") },
  { name: "demo", entry: "src/demo/main.ts", folder: here("../docs/demo/") },
  { name: "app", entry: "src/app/main.ts", folder: here("../src/pipeplan/extensions/web/assets/") },
  { name: "plan", entry: "src/plan/main.ts", folder: here("../src/pipeplan/extensions/web/assets/") },
  { name: "review", entry: "src/review/main.ts", folder: here("../src/pipeplan/extensions/web/assets/") },
];

/** The files of a bundle: script, style and licences. */
async function filesOf({ name, entry, folder, globalName }) {
  const result = await build({
    absWorkingDir: here("."),
    entryPoints: { [name]: entry },
    outdir: folder,
    bundle: true,
    minify: true,
    format: "iife",
    globalName,
    target: "es2022",
    charset: "ascii",
    legalComments: "none",
    metafile: true,
    write: false,
  });
  const contents = await licences(result.metafile.outputs);
  const banner = `/* Built from web_ui/.${contents === "" ? "" : ` Licences of what it contains: ${name}.licences.txt.`} */\n`;
  const files = result.outputFiles.map(({ path, text }) => ({
    path,
    contents: Buffer.from(path.endsWith(".js") ? banner + text : text),
  }));
  return contents === ""
    ? files
    : [...files, { path: `${folder}${name}.licences.txt`, contents: Buffer.from(contents) }];
}

/** The licence of every package that a bundle contains, by name. */
async function licences(outputs) {
  const inputs = Object.values(outputs).flatMap((output) =>
    Object.entries(output.inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  );
  const names = new Set(inputs.map((input) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]));
  names.delete(undefined);
  const texts = [...names].sort().map(async (name) => {
    const file = (await readdir(here(`node_modules/${name}`))).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`${name} has no licence file`);
    return `${name}\n\n${(await readFile(here(`node_modules/${name}/${file}`), "utf8")).trim()}\n`;
  });
  return (await Promise.all(texts)).join("\n----\n\n");
}

const checking = process.argv.includes("--check");
for (const { path, contents } of (await Promise.all(BUNDLES.map(filesOf))).flat()) {
  const committed = await readFile(path).catch(() => null);
  if (committed?.equals(contents)) continue;
  if (!checking) await writeFile(path, contents);
  else {
    process.stderr.write(`${path} differs from what web_ui/ builds: run 'make web-ui' and commit the result\n`);
    process.exitCode = 1;
  }
}
