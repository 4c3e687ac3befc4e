// A window that finds no Ward starts one, and ends what it started.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeBrowser, folder, home, limit, open, rm, serve, workbench } from "./workbench.mjs";

let at, bench;
before(async () => {
  at = await home();
  bench = await workbench(at, { "ward.path": process.env.WARD_BIN });
}, limit);
after(async () => {
  await closeBrowser();
  await bench.end();
  await rm(at, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
});

const isThere = (url) => fetch(`${url}/healthz`).then(({ ok }) => ok, () => false);

test("a window starts Ward where none runs, a second window uses it, and it ends when it is closed", limit, async (t) => {
  if (await isThere("http://127.0.0.1:3000")) return t.skip("a Ward runs at the usual address");
  const one = await open(t, bench, await folder(join(at, "one")));
  await one.connect();
  await one.command("Ward: Show Status");
  const row = one.page.locator(".quick-input-list .monaco-list-row", { hasText: "started by this window" });
  await row.waitFor();
  await one.shot("status");
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await row.innerText())[0];
  await one.page.keyboard.press("Escape");
  assert.ok(await isThere(url));
  const two = await open(t, bench, await folder(join(at, "two")));
  await two.connect();
  await two.command("Ward: Show Status");
  await two.page.locator(".quick-input-list .monaco-list-row", { hasText: url }).waitFor();
  await two.page.keyboard.press("Escape");
  await two.command("Ward: Disconnect");
  await two.status(/Ward: off/).waitFor();
  assert.ok(await isThere(url), "it is not the second window's to end");
  await one.page.close({ runBeforeUnload: true });
  for (let tries = 0; await isThere(url); tries++) {
    assert.ok(tries < 200, "it still runs");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
});

test("where there is no such program the window says what to do", limit, async (t) => {
  if (await isThere("http://127.0.0.1:3000")) return t.skip("a Ward runs at the usual address");
  await bench.set({ "ward.path": "/no/such/ward" });
  const window = await open(t, bench, await folder(join(at, "three")));
  await window.command("Ward: Open Chat");
  await window.status(/Ward: not connected/).waitFor();
  await window.page.locator(".notification-toast", { hasText: "set ward.path" }).waitFor();
  const chat = await window.chat("#connect");
  await chat.getByText("there is no such program").waitFor();
  await window.shot("not-there");
});

test("another's Ward asks for its token, which is kept; a window connects as it opens where the person has set it so", limit, async (t) => {
  const other = await home();
  const ward = await serve(other);
  t.after(async () => {
    await ward.kill();
    await rm(other, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  });
  await bench.set({ "ward.url": ward.url });
  const work = await folder(join(at, "four"), { "a.txt": "a\n" });
  const window = await open(t, bench, work);
  await window.command("Ward: Connect This Window");
  const input = window.page.locator(".quick-input-widget input").first();
  await window.page.getByText("Your token for").waitFor();
  await window.shot("token");
  await input.fill("ward_person_wrong");
  await window.page.getByText("Ward does not take this token").waitFor();
  await input.fill(ward.token);
  await input.press("Enter");
  await window.status(/Ward: connected/).waitFor();
  const { runtime_id } = await ward.runtime(work);
  assert.equal((await ward.act(runtime_id, "fs.read", { path: "a.txt" })).result.content, "a\n");
  await bench.set({ "ward.connectOnStartup": true });
  await window.page.reload();
  await window.status(/Ward: connected/).waitFor();
  await ward.runtime(work);
});
