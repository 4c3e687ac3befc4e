// Whatever happens to the connection, the page or Ward: nothing is lost, and nothing comes twice.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { begin, closeBrowser, idle, limit, model, open, question, say, serve } from "./ward.mjs";

after(closeBrowser);

/** A turn of numbered words that stops in the middle until it is told to go on. */
function numbered(count, stopAt) {
  let go;
  const gate = new Promise((resolve) => (go = resolve));
  const parts = Array.from({ length: count }, (_, index) => ({ text: `w${index} `, wait: index === stopAt ? gate : undefined }));
  return { parts, go: () => go() };
}

const words = (count) => Array.from({ length: count }, (_, index) => `w${index}`).join(" ");
const said = async (page) => (await page.locator(".said").last().innerText()).trim();

test("a page that is loaded again in mid-stream shows everything once, and goes on", limit, async (t) => {
  const scripted = await model(t);
  const turn = numbered(60, 30);
  scripted.turns.push(turn.parts);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  await begin(it, page, "Count.");
  await page.getByText("w30").waitFor();
  await page.reload();
  await page.getByText("w30").waitFor();
  assert.equal(await said(page), words(31));
  turn.go();
  await page.getByText("w59").waitFor();
  await idle(page);
  assert.equal(await said(page), words(60));
  assert.equal(await page.locator(".me").count(), 1);
});

test("a page that is loaded again with a question open can still answer it", limit, async (t) => {
  const it = await serve(t);
  const letter = join(it.home, "letter.txt");
  await writeFile(letter, "Dear Ada\n");
  const { page } = await open(t, it);
  await say(page, `read ${letter}`);
  await question(page).waitFor();
  await page.reload();
  await question(page).waitFor();
  assert.equal(await page.locator(".ask").count(), 1);
  await question(page).getByRole("button", { name: "Allow once" }).click();
  await page.locator(".said").getByText("Dear Ada").waitFor();
  await idle(page);
});

test("a connection that breaks in mid-stream comes back by itself, with a word about it, and no gap", limit, async (t) => {
  const scripted = await model(t);
  const turn = numbered(60, 30);
  scripted.turns.push(turn.parts);
  const it = await serve(t, { env: scripted.env });
  const { context, page } = await open(t, it);
  await begin(it, page, "Count.");
  await page.getByText("w30").waitFor();
  await context.setOffline(true);
  // What is under way goes on; a new connection cannot be made.
  await page.evaluate(() => window.stop());
  await page.getByText("Ward does not answer. Trying again…").waitFor();
  turn.go();
  await context.setOffline(false);
  await page.getByText("w59").waitFor();
  await idle(page);
  await page.locator('[data-connection="open"]').waitFor({ state: "attached" });
  assert.equal(await said(page), words(60));
});

test("Ward can be killed and started again in mid-stream: the page says so, comes back, and goes on", limit, async (t) => {
  const scripted = await model(t);
  const turn = numbered(60, 30);
  scripted.turns.push(turn.parts, [{ text: "Here I am again." }]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  await begin(it, page, "Count.");
  await page.getByText("w30").waitFor();
  await it.kill();
  await page.getByText("Ward does not answer. Trying again…").waitFor();
  // What was there stays in sight meanwhile.
  await page.locator(".me", { hasText: "Count." }).waitFor();
  await it.start();
  await page.locator('[data-connection="open"]').waitFor({ state: "attached" });
  await idle(page);
  assert.equal(await page.locator(".me", { hasText: "Count." }).count(), 1);
  await say(page, "Are you there?");
  await page.getByText("Here I am again.").waitFor();
  await idle(page);
  assert.equal(await page.locator(".me").count(), 2);
  assert.equal(await page.getByText("w30").count() <= 1, true);
});

test("a question survives a Ward that was killed, and its answer counts", limit, async (t) => {
  const it = await serve(t);
  const letter = join(it.home, "letter.txt");
  await writeFile(letter, "Dear Ada\n");
  const { page } = await open(t, it);
  await say(page, `read ${letter}`);
  await question(page).waitFor();
  await it.kill();
  await page.getByText("Ward does not answer. Trying again…").waitFor();
  await it.start();
  await page.locator('[data-connection="open"]').waitFor({ state: "attached" });
  const { approvals } = (await it.call("GET", "/approvals")).body;
  assert.equal(approvals.length, 1);
  await question(page).getByRole("button", { name: "Allow once" }).click();
  await page.locator(".said").getByText("Dear Ada").waitFor();
});

test("a place whose code cannot be fetched says so, and the rest of the page stays", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  await it.kill();
  await page.getByText("Ward does not answer. Trying again…").waitFor();
  await page.getByRole("link", { name: "Ledger" }).click();
  await page.getByText("This place cannot be shown.").waitFor();
  await it.start();
  await page.getByRole("link", { name: "+ New session" }).click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  await page.getByRole("link", { name: "Ledger" }).click();
  await page.getByRole("button", { name: "Load the page again" }).click();
  await page.getByRole("heading", { name: "Ledger" }).waitFor();
  // The browser's console has the error, and nothing else went wrong.
  for (const said of page.wrong.splice(0)) assert.match(said, /^console: TypeError: Failed to fetch dynamically imported module/);
});

test("Ctrl+. stops the agent from wherever the focus is", limit, async (t) => {
  const scripted = await model(t);
  scripted.turns.push([{ text: "I wait." }, { call: "terminal_run", with: { command: "echo begun; sleep 1000" } }]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  await begin(it, page, "Wait.");
  await page.locator(".term", { hasText: "begun" }).waitFor();
  await page.getByRole("textbox", { name: "Message" }).focus();
  await page.keyboard.press("Control+.");
  await idle(page);
  await page.getByText("Stopped.", { exact: true }).first().waitFor();
});

test("stop ends the answer and the command that runs, and the session goes on afterwards", limit, async (t) => {
  const scripted = await model(t);
  scripted.turns.push([{ text: "I wait." }, { call: "terminal_run", with: { command: "echo begun; sleep 1000" } }], [{ text: "Well then." }]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  await begin(it, page, "Wait.");
  await page.locator(".term", { hasText: "begun" }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.", { exact: true }).first().waitFor();
  await idle(page);
  assert.notEqual(await page.locator(".card").getAttribute("data-state"), "running");
  await say(page, "Go on.");
  await page.getByText("Well then.").waitFor();
});
