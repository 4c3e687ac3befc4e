// What happens while a window connects: here it waits for a token, because the Ward is another home's.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeBrowser, folder, home, limit, open, rm, serve, workbench } from "./workbench.mjs";

let at, other, ward, bench;
before(async () => {
  [at, other] = [await home(), await home()];
  ward = await serve(other);
  bench = await workbench(at, { "ward.url": ward.url });
}, limit);
after(async () => {
  await closeBrowser();
  await bench.end();
  await ward.kill();
  for (const one of [at, other]) await rm(one, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
});

test("a folder that is added while the window connects is connected too", limit, async (t) => {
  const [left, right] = [await folder(join(at, "left")), await folder(join(at, "right"))];
  const workspace = join(at, "both.code-workspace");
  const folders = (...paths) => writeFile(workspace, JSON.stringify({ folders: paths.map((path) => ({ path })) }));
  await folders(left);
  const window = await open(t, bench, workspace);
  await window.command("View: Show Explorer");
  await window.command("Ward: Connect This Window");
  await window.page.getByText("Your token for").waitFor();
  await folders(left, right);
  await window.page.locator(".explorer-folders-view .monaco-list-row", { hasText: "right" }).waitFor();
  const input = window.page.locator(".quick-input-widget input").first();
  await input.fill(ward.token);
  await input.press("Enter");
  for (const path of [left, right]) await ward.runtime(path);
  await window.status(/Ward: connected/).waitFor();
});
