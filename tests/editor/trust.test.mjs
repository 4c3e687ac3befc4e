// A window whose workspace is not trusted.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, limit, open, stage } from "./workbench.mjs";

let at, ward, bench, end;
before(async () => ({ at, ward, bench, end } = await stage({}, { trust: true })), limit);
after(() => end());

test("a workspace that is not trusted does not connect until it is", limit, async (t) => {
  const work = await folder(join(at, "foreign"), { "a.txt": "a\n" });
  const window = await open(t, bench, work);
  await window.page.locator(".monaco-dialog-box").getByRole("button", { name: /^No/ }).click();
  await window.command("Ward: Connect This Window");
  await window.page.locator(".notification-toast", { hasText: "is not trusted" }).waitFor();
  await window.status(/Ward: not connected/).waitFor();
  await window.shot("untrusted");
  assert.deepEqual((await ward.call("GET", "/runtimes?kind=vscode")).body.runtimes, []);
  // The person trusts it after all.
  await window.command("Workspaces: Manage Workspace Trust");
  await window.page.locator(".workspace-trust-editor").getByRole("button", { name: "Trust", exact: true }).first().click();
  await window.connect();
  await ward.runtime(work);
});
