// Bundles the page to dist/: names carry the digest of their content, and what did not change is
// not written again, so that nothing is built anew because of it.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";

const dist = join(import.meta.dirname ?? ".", "dist");
const FIRST_LOAD = 400 * 1024;

const result = await build({
  entryPoints: { main: "src/main.tsx" },
  bundle: true,
  splitting: true,
  format: "esm",
  target: ["chrome111", "firefox115", "safari16.4"],
  minify: true,
  write: false,
  metafile: true,
  outdir: dist,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  loader: { ".wasm": "file" },
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
  legalComments: "none",
  logLevel: "warning",
});

const files = new Map(result.outputFiles.map((file) => [basename(file.path), Buffer.from(file.contents)]));
const icon = await readFile("src/icon.svg");
const iconName = `icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8)}.svg`;
files.set(iconName, icon);

const outputs = Object.entries(result.metafile.outputs);
const [, entry] = outputs.find(([, output]) => output.entryPoint === "src/main.tsx");
const script = basename(outputs.find(([, output]) => output === entry)[0]);
const style = basename(entry.cssBundle);
// What the page needs at once is fetched at once, not one import after the other.
const wanted = new Set([script]);
for (const name of wanted) {
  const output = outputs.find(([path]) => basename(path) === name)[1];
  for (const { path, kind } of output.imports) if (kind === "import-statement") wanted.add(basename(path));
}
const preload = [...wanted].filter((name) => name !== script).map((name) => `<link rel="modulepreload" href="/assets/${name}">\n`);
const template = await readFile("src/index.html", "utf8");
files.set("index.html", Buffer.from(template
  .replace("{{icon}}", `/assets/${iconName}`)
  .replace("{{style}}", `/assets/${style}`)
  .replace("{{preload}}\n", preload.join(""))
  .replace("{{script}}", `/assets/${script}`)));

let first = 0;
for (const [name, content] of [...files]) {
  if (name === "index.html") continue;
  const packed = gzipSync(content, { level: 9 });
  if (packed.length < content.length) files.set(`${name}.gz`, packed);
  if (wanted.has(name) || name === style) first += packed.length;
  console.log(`${String(content.length).padStart(8)} ${String(packed.length).padStart(7)} gz  ${name}`);
}
console.log(`First load: ${(first / 1024).toFixed(0)} kB gzipped`);
if (first > FIRST_LOAD) throw new Error(`The first load is over ${FIRST_LOAD / 1024} kB gzipped: load parts when they are needed.`);

await mkdir(dist, { recursive: true });
for (const name of await readdir(dist)) {
  if (name !== ".gitkeep" && !files.has(name)) await rm(join(dist, name));
}
for (const [name, content] of files) {
  const path = join(dist, name);
  const there = await readFile(path).catch(() => undefined);
  if (!there?.equals(content)) await writeFile(path, content);
}
