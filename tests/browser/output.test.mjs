// What actions print and change.

import assert from "node:assert/strict";
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { begin, closeBrowser, idle, limit, model, open, question, say, serve } from "./ward.mjs";

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
  await say(page, "run sh -c 'touch /etc/ward-test; exit 3'");
  // It ran, the wall stopped it, and to run it again with more open asks.
  const asked = question(page);
  await asked.waitFor();
  const text = await asked.innerText();
  for (const part of ["wants to run a command again, with more open", "sh -c 'touch /etc/ward-test; exit 3'", "write /etc", "It ended because the wall stopped it."]) assert.ok(text.includes(part), text);
  await page.keyboard.press("Escape");
  await page.keyboard.press("d");
  await page.keyboard.press("Enter");
  await idle(page);
  const card = page.locator(".card");
  assert.equal(await card.getAttribute("data-state"), "bad");
  assert.match(await card.locator(".meta").innerText(), /^exit 3\d+(\.\d)? m?s/);
  assert.match(await card.locator(".meta").innerText(), /in the sandbox$/);
  assert.deepEqual(await card.locator(".held li").allInnerTexts(), ["The wall stopped a write to /etc/ward-test"]);
  await assert.rejects(access("/etc/ward-test"));
});

test("a redirection out of the wall is asked for before anything runs, and after a no nothing did", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  await say(page, "run sh -c 'echo begun > here.txt; echo x > /etc/ward-test; exit 3'");
  const asked = question(page);
  await asked.waitFor();
  const text = await asked.innerText();
  for (const part of ["wants to run a command", "it would cross the wall", "write /etc/ward-test", "Nothing has been done yet."]) assert.ok(text.includes(part), text);
  await page.keyboard.press("Escape");
  await page.keyboard.press("d");
  await page.keyboard.press("Enter");
  await idle(page);
  const card = page.locator(".card");
  assert.equal(await card.getAttribute("data-state"), "denied");
  await card.getByText("said no.").waitFor();
  assert.equal(await card.locator(".term, .held").count(), 0);
  await assert.rejects(access(join(it.workspace, "here.txt")));
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
  await card.getByRole("button", { name: "Undo the change of list.txt" }).click();
  await card.getByText("undone").waitFor();
  assert.equal(await readFile(join(it.workspace, "list.txt"), "utf8"), "one\ntwo\nthree\n");
  await changed.getByText("No file yet.").waitFor();
  // It is known after the page was loaded again, too.
  await page.reload();
  await card.getByText("undone").waitFor();
});
