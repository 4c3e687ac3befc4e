// Terminals: shown as they are drawn, and typed into by the person.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { begin, closeBrowser, limit, model, open, question, serve, shot } from "./ward.mjs";

after(closeBrowser);

/** A session whose agent opened a terminal with this in it. */
async function scene(t, command, { more = [], rules } = {}) {
  const scripted = await model(t);
  scripted.turns.push([{ call: "terminal_open", with: command === undefined ? {} : { command } }, ...more], [{ text: "It is open." }]);
  const it = await serve(t, { env: scripted.env });
  if (rules) await writeFile(join(it.home, ".config/ward/rules.toml"), rules);
  const { page, context } = await open(t, it);
  const session = await begin(it, page, "Open one.");
  const card = page.locator(".card", { has: page.locator(".xterm-box") });
  const screen = card.locator(".xterm-rows");
  const enter = async () => {
    await card.getByRole("button", { name: "type into it" }).click();
    await card.getByText("You type here").waitFor();
  };
  return { it, page, context, session, card, screen, enter, scripted };
}

const written = async (it) => (await it.call("GET", "/ledger?kind=request&limit=1000")).body.entries.filter((entry) => entry.data.action === "terminal.write");

test("what runs in a terminal of its own is shown in a real one", limit, async (t) => {
  const { page, screen } = await scene(t, String.raw`printf 'left\033[10Cright\r\nsecond'; sleep 60`);
  await screen.getByText("second").waitFor();
  assert.match(await screen.innerText(), /left\s{10}right/);
  // Its own style sheets are let in: the screen has its colours and a fixed grid.
  assert.equal(await page.locator(".xterm-screen style").first().evaluate((style) => style.sheet?.cssRules.length > 0), true);
});

test("a person types into a terminal, through the gate, and sees how it ends", limit, async (t) => {
  const { it, page, card, screen, enter } = await scene(t, String.raw`printf 'Name? '; read -r name; echo "Hello, $name."; stty size; read -r code; exit "$code"`);
  await screen.getByText("Name?").waitFor();
  await enter();
  await page.keyboard.type("Ada Lövelace\n");
  await screen.locator("> div", { hasText: "Hello, Ada Lövelace." }).waitFor();
  await shot(page, "terminal");
  // The program knows how wide it is drawn.
  const [, cols] = /\b\d+ (\d+)\b/.exec((await screen.innerText()).split("Lövelace.")[1]) ?? [];
  assert.ok(Number(cols) > 80 && Number(cols) < 200, `${cols} columns`);
  await page.keyboard.type("7\n");
  await card.getByText("Ended, exit 7").waitFor();
  assert.equal(await card.getByRole("button", { name: "type into it" }).count(), 0);
  const entries = await written(it);
  assert.equal(entries.map((entry) => entry.data.params.data).join(""), "Ada Lövelace\r7\r");
  assert.ok(entries.every((entry) => entry.actor.startsWith("person:")));
  // Loaded again, it is as it was.
  await page.reload();
  await screen.locator("> div", { hasText: "Hello, Ada Lövelace." }).waitFor();
  await card.getByText("Ended, exit 7").waitFor();
});

test("an interactive shell takes what is pasted, control keys and what is typed quickly, in order", limit, async (t) => {
  const { context, it, page, card, screen, enter } = await scene(t);
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: it.url });
  await card.getByRole("button", { name: "type into it" }).waitFor();
  await enter();
  const letters = "abcdefghijklmnopqrstuvwxyz0123456789".repeat(4);
  await page.keyboard.type(`echo ${letters} | md5sum; sleep 100\n`);
  const { createHash } = await import("node:crypto");
  await screen.getByText(createHash("md5").update(`${letters}\n`).digest("hex")).waitFor();
  await page.keyboard.press("Control+c");
  await page.evaluate(() => navigator.clipboard.writeText("echo pasted-$((6*7))\n"));
  await page.keyboard.press("Control+Shift+v");
  // Headless Chromium has no such key: the same as its menu would do.
  if (!(await screen.innerText()).includes("pasted-")) {
    await page.evaluate(() => {
      const data = new DataTransfer();
      data.setData("text/plain", "echo pasted-$((6*7))\n");
      document.activeElement.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    });
  }
  await page.keyboard.press("Enter");
  await screen.getByText("pasted-42").first().waitFor();
});

test("nothing is typed in the person's name that the person did not type", limit, async (t) => {
  // The program asks the terminal what it is, where its cursor is, and for texts of its own choosing.
  const { it, page, screen, enter } = await scene(t, String.raw`printf '\033[c\033[6n\033[5n\033P$qm\033\\\033]11;?\007ready\r\n'; IFS= read -r line; printf 'got<%s>\r\n' "$line" | cat -v; printf '\033P$qm\033\\\033]11;?\007'; IFS= read -r line; printf 'then<%s>\r\n' "$line" | cat -v; sleep 60`);
  await screen.getByText("ready").waitFor();
  await page.reload();
  await screen.getByText("ready").waitFor();
  assert.deepEqual(await written(it), []);
  await enter();
  await page.keyboard.type("one\n");
  await screen.getByText("got<one>").waitFor();
  await page.keyboard.type("two\n");
  await screen.getByText("then<two>").waitFor();
});

test("the keyboard gets into a terminal and out again, and answers no question from inside", limit, async (t) => {
  const { it, page, card, screen, enter } = await scene(t, "echo ready; cat", { more: [{ call: "fs_read", with: { path: "/etc/hostname" } }] });
  await screen.getByText("ready").waitFor();
  await question(page).waitFor();
  await enter();
  await page.keyboard.type("abcd\n");
  await screen.getByText("abcd").nth(1).waitFor();
  assert.equal(await page.locator(".ask").count(), 1);
  assert.equal((await it.call("GET", "/approvals")).body.approvals.length, 1);
  await page.keyboard.press("Shift+Escape");
  await card.getByText("Running").waitFor();
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ""), /type into it/);
  // From there on the page's keys are the page's again.
  await page.keyboard.press("Enter");
  await card.getByText("You type here").waitFor();
  await page.keyboard.press("Shift+Escape");
  await page.keyboard.press("a");
  await page.locator(".closed", { hasText: "Allowed once" }).waitFor();
});

test("where a rule keeps typing back, the terminal says so and is read only", limit, async (t) => {
  const { card, page, screen, enter } = await scene(t, "echo ready; cat", { rules: '[[rules]]\ndeny = "terminal.write"\nreason = "Hands off."\n' });
  await screen.getByText("ready").waitFor();
  await enter();
  await page.keyboard.type("x");
  await card.getByRole("alert").filter({ hasText: "Hands off." }).waitFor();
  assert.equal(await card.getByRole("button", { name: "type into it" }).count(), 0);
});
