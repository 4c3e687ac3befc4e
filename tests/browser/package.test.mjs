// The npm package, as somebody else would use it: packed, installed into a fresh project, checked and
// imported.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { limit } from "./ward.mjs";

const run = promisify(execFile);
const ui = resolve(import.meta.dirname ?? ".", "../../ui");

const USE = `
import { ArtifactClient, type Bundle, type NotebookStore, createBrowserRuntimeAgent, isHtml, openNotebook } from "@ward/runtime-browser";
import { useBrowserRuntime, useNotebook } from "@ward/runtime-browser/react";

export async function main(): Promise<string> {
  const store: NotebookStore = await openNotebook({ notebook: "4f2a" });
  const agent = createBrowserRuntimeAgent(store, { can_execute_code: true }, { runtimeType: "echo" });
  agent.logTo((level, words) => console.log(level, words));
  agent.onExecution(async ({ cell, signal, ...say }) => {
    if (signal.aborted) return { cancelled: true };
    const bundle: Bundle = { data: { "text/plain": { inline: \`Echo: \${cell.source}\` } } };
    say.result(bundle);
    return { success: true };
  });
  const { ending } = await agent.start();
  await new ArtifactClient(store).upload("image/png", new Uint8Array());
  // @ts-expect-error An edit has to say which cell.
  store.commit({ kind: "cell.deleted" });
  return isHtml("text/html") ? ending : store.user;
}

export function Cells({ store }: { store: NotebookStore }): number {
  const runtime = useBrowserRuntime(store);
  return useNotebook(store).cells.length + (runtime.state === "running" ? 1 : 0);
}
`;

const IMPORT = `
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { isHtml, isMediaBundle, load, validateMediaBundle } from "@ward/runtime-browser";
assert.throws(() => isHtml("text/html"), /not loaded yet/);
const bytes = await readFile(fileURLToPath(import.meta.resolve("@ward/runtime-browser/wasm")));
await load(await WebAssembly.compile(bytes));
assert.equal(isHtml("text/html; charset=utf-8"), true);
assert.equal(isMediaBundle({ data: { "text/plain": { inline: "x" } } }), true);
assert.throws(() => validateMediaBundle({ data: {} }), (error) => error.kind === "invalid_params" && /nothing to show/.test(error.message));
console.log("imported");
`;

test("the package is packed, installs into a fresh project, type-checks there and works", limit, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "ward-package-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await run("npm", ["run", "--silent", "package"], { cwd: ui });
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", folder], { cwd: join(ui, "packages/runtime-browser") });
  const [{ filename, files }] = JSON.parse(stdout);
  const names = files.map(({ path }) => path);
  for (const wanted of ["dist/index.js", "dist/index.d.ts", "dist/react.js", "wasm/runtime_browser.js", "wasm/runtime_browser_bg.wasm"]) assert.ok(names.includes(wanted), wanted);
  assert.ok(!names.some((name) => name.startsWith("src/")), names.join(" "));

  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "fresh", private: true, type: "module" }));
  await run("npm", ["install", "--no-audit", "--no-fund", "--offline", join(folder, filename)], { cwd: folder });
  // Of what it does not bring, only what its types are about.
  await mkdir(join(folder, "node_modules/@types"), { recursive: true });
  for (const name of ["react", "csstype", "@types/react"]) await symlink(join(ui, "node_modules", name), join(folder, "node_modules", name));
  await writeFile(join(folder, "use.ts"), USE);
  const options = ["--noEmit", "--strict", "--target", "ES2022", "--module", "ESNext", "--moduleResolution", "bundler", "--lib", "ES2023,DOM,DOM.Iterable", "--types", "react"];
  const { stdout: said } = await run("node", [join(ui, "node_modules/typescript/bin/tsc"), ...options, "use.ts"], { cwd: folder }).catch((error) => error);
  assert.equal(said, "");
  await writeFile(join(folder, "import.mjs"), IMPORT);
  const { stdout: imported } = await run("node", ["import.mjs"], { cwd: folder });
  assert.equal(imported, "imported\n");
  assert.ok((await readFile(join(folder, "node_modules/@ward/runtime-browser/wasm/runtime_browser_bg.wasm"))).length > 100_000);
});
