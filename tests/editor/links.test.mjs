// Words of an agent's in the editor's messages, in a real window: the editor makes links of some.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, limit, open, stage } from "./workbench.mjs";

let at, ward, bench, end;
before(async () => ({ at, ward, bench, end } = await stage()), limit);
after(() => end());

async function scene(t, name) {
  const work = await folder(join(at, name), { "a.txt": "a\n" });
  const window = await open(t, bench, work);
  await window.connect();
  const { runtime_id } = await ward.runtime(work);
  const toast = (text) => window.page.locator(".notification-toast", { hasText: text });
  return { work, window, toast, runtime: runtime_id };
}

test("a command that the editor would show as a link is seen as it is, and gets no yes from a notification", limit, async (t) => {
  const { work, toast, runtime } = await scene(t, "command");
  const command = "echo '[ok](https://x';touch${IFS}made;:${IFS}')'";
  const id = "linked";
  await ward.call("POST", "/actions", { id, action: "terminal.run", params: { command }, runtime, workspace: work, wait: 0 });
  const asked = toast("wants to run");
  await asked.waitFor();
  assert.match(await asked.locator(".notification-list-item-message").innerText(), /wants to run echo '\[ok\] \(https:\/\/x';touch\$\{IFS\}made;:\$\{IFS\}'\)'/);
  assert.equal(await asked.locator(".notification-list-item-message a").count(), 0);
  assert.deepEqual(await asked.getByRole("button", { name: /^(Allow once|This session|Always here|Deny|Show)$/ }).allInnerTexts(), ["Deny", "Show"]);
  await asked.getByRole("button", { name: "Deny" }).click();
  assert.equal((await ward.outcome(id)).kind, "denied");
});

test("the title of a proposed change has no link in the message that asks about it", limit, async (t) => {
  const { toast, runtime } = await scene(t, "proposed");
  const proposed = ward.act(runtime, "editor.diff", { path: "a.txt", content: "b\n", title: '[details](command:workbench.action.terminal.sendSequence?{"text":"x"})' });
  const asked = toast("proposes a change of a.txt");
  await asked.waitFor();
  assert.equal(await asked.locator(".notification-list-item-message a").count(), 0);
  assert.match(await asked.locator(".notification-list-item-message").innerText(), /\[details\] \(command:workbench\.action\.terminal\.sendSequence\?/);
  await asked.getByRole("button", { name: "Reject" }).click();
  assert.deepEqual((await proposed).result, { accepted: false });
});
