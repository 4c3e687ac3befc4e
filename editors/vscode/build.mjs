// Bundles the extension to out/: one file for the editor, one for the webview, and, with --tests,
// each test.

import { build } from "esbuild";
import { readdir, rm } from "node:fs/promises";
import { resolve } from "node:path";

const node = {
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  // ws does without them.
  external: ["vscode", "bufferutil", "utf-8-validate"],
  legalComments: "none",
  logLevel: "warning",
};

await rm("out", { recursive: true, force: true });
if (process.argv.includes("--tests")) {
  const tests = (await readdir("test")).filter((name) => name.endsWith(".test.ts"));
  // There is no editor: the tests bring one.
  const external = node.external.filter((name) => name !== "vscode");
  await build({ ...node, external, alias: { vscode: resolve("test/vscode.ts") }, entryPoints: tests.map((name) => `test/${name}`), outdir: "out/test", outExtension: { ".js": ".cjs" } });
} else {
  await build({ ...node, entryPoints: { extension: "src/extension.ts", search: "src/actions/search-worker.ts" }, outdir: "out", minify: true });
  await build({
    bundle: true,
    entryPoints: { boot: "src/webview/boot.ts" },
    outdir: "out",
    format: "iife",
    target: "chrome120",
    minify: true,
    legalComments: "none",
    logLevel: "warning",
  });
}
