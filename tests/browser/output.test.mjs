// What actions print and change.

import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { begin, closeBrowser, idle, limit, model, open, say, serve, shot } from "./ward.mjs";

after(closeBrowser);

test("100,000 lines of output are all there, and only what can be seen is drawn", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  await say(page, "run seq 1 100000");
  await idle(page);
  const card = page.locator(".card");
  // What was printed while somebody watched is there; otherwise it is a click away.
  const more = card.getByRole("button", { name: "show all of it" });
  await card.getByText("100,000 lines").or(more).first().waitFor();
  if (await more.count()) await more.click();
  const output = card.locator(".term");
  await card.getByText("100,000 lines").waitFor();
  assert.equal(await output.getAttribute("data-lines"), "100000");
  const rows = () => output.locator(".term-line").count();
  assert.ok((await rows()) < 200, `${await rows()} rows are drawn`);
  await output.getByText("100000", { exact: true }).waitFor();
  // Through all of it in sixty steps. A machine that does other things delays some frames, so the
  // usual step is looked at.
  const usual = await output.evaluate(async (box) => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const steps = [];
    for (let step = 0; step <= 60; step++) {
      const before = performance.now();
      box.scrollTop = (box.scrollHeight * step) / 60;
      await frame();
      await frame();
      steps.push(performance.now() - before);
    }
    box.scrollTop = box.scrollHeight / 2;
    await frame();
    await frame();
    return steps.sort((a, b) => a - b)[30];
  });
  t.diagnostic(`the usual step of two frames: ${usual.toFixed(0)} ms`);
  assert.ok(usual < 120, `a step takes ${usual} ms`);
  const middle = Number((await output.locator(".term-line").nth(40).innerText()).trim());
  assert.ok(middle > 49_000 && middle < 51_000, `the middle shows line ${middle}`);
  assert.ok((await rows()) < 200);
});

test("output comes while the command runs, with its colours and without its other escapes", limit, async (t) => {
  const scripted = await model(t);
  const command = String.raw`printf '\033[31mred\033[0m \033[1;38;5;45mbright\033[0m \033]0;title\007\033[2Jplain\n'; printf '10%%\r20%%\rdone\n'; read -t 30 < <(sleep 30); echo`;
  scripted.turns.push([{ call: "terminal_run", with: { command } }]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  await begin(it, page, "Run it.");
  const output = page.locator(".term");
  await output.getByText("plain").waitFor();
  assert.equal(await page.locator(".card").getAttribute("data-state"), "running");
  assert.equal(await output.locator(".fg1").innerText(), "red");
  assert.equal(await output.locator(".t-bold").evaluate((element) => getComputedStyle(element).color), "rgb(0, 215, 255)");
  assert.equal((await output.locator(".term-line").first().innerText()).trim(), "red bright plain");
  assert.equal((await output.locator(".term-line").nth(1).innerText()).trim(), "done");
  await page.getByRole("button", { name: "Stop" }).click();
  await idle(page);
});

test("a command's card says how it ended, how long it took and what the sandbox stopped", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  await say(page, "run sh -c 'echo x > /etc/ward-test; exit 3'");
  // What the wall stopped may be asked for; here it stays closed.
  const card = page.locator(".card").first();
  await page.locator(".ask, .card[data-state=bad]").first().waitFor();
  if (await page.locator(".ask").count()) {
    await page.locator('.ask[data-armed="true"]').waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("d");
    await page.keyboard.press("Enter");
  }
  await idle(page);
  const text = await card.innerText();
  assert.match(text, /exit 3|refused|Denied|stopped/i);
  await page.locator(".held, .card-note").first().waitFor();
  assert.match(await page.locator(".card").first().innerText(), /\/etc\/ward-test/);
});

test("an edit is shown as a diff, and undo puts the file back", limit, async (t) => {
  const it = await serve(t, { files: { "list.txt": "one\ntwo\nthree\n" } });
  const { page } = await open(t, it);
  await say(page, "in list.txt replace two with 2");
  await idle(page);
  const card = page.locator(".card");
  assert.match(await card.locator(".diff-line.del").innerText(), /two/);
  assert.match(await card.locator(".diff-line.add").innerText(), /2/);
  assert.match(await card.innerText(), /\+1\s*−1/);
  assert.equal(await readFile(join(it.workspace, "list.txt"), "utf8"), "one\n2\nthree\n");
  const changed = page.getByRole("region", { name: "Changed in this session" });
  await changed.getByText("list.txt").waitFor();
  await shot(page, "diff");
  await card.getByRole("button", { name: "Undo the change of list.txt" }).click();
  await card.getByText("undone").waitFor();
  assert.equal(await readFile(join(it.workspace, "list.txt"), "utf8"), "one\ntwo\nthree\n");
  await changed.getByText("No file yet.").waitFor();
  // It is known after the page was loaded again, too.
  await page.reload();
  await card.getByText("undone").waitFor();
});

test("all changes of a session can be undone at once", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  await say(page, "write a.txt: one, then write b.txt: two");
  await page.locator(".card").nth(1).waitFor();
  await idle(page);
  const changed = page.getByRole("region", { name: "Changed in this session" });
  await changed.getByText("b.txt").waitFor();
  await changed.getByRole("button", { name: "Undo all…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Undo 2 files" }).click();
  await changed.getByText("No file yet.").waitFor();
  for (const name of ["a.txt", "b.txt"]) await assert.rejects(access(join(it.workspace, name)));
});

test("what runs in a terminal of its own is shown in a real one", limit, async (t) => {
  const scripted = await model(t);
  scripted.turns.push([{ call: "terminal_open", with: { command: String.raw`printf 'left\033[10Cright\r\nsecond'; sleep 60` } }], [{ text: "It is open." }]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  await begin(it, page, "Open one.");
  await page.getByText("It is open.").waitFor();
  const terminal = page.locator(".xterm-rows");
  await terminal.getByText("second").waitFor();
  assert.match(await terminal.innerText(), /left\s{10}right/);
  // Its own style sheets are let in: the screen has its colours and a fixed grid.
  assert.equal(await page.locator(".xterm-screen style").first().evaluate((style) => style.sheet?.cssRules.length > 0), true);
});
