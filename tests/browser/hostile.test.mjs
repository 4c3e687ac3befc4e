// Everything that an agent controls is hostile: what it says, names, prints and changes.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { begin, closeBrowser, idle, limit, model, open, question, serve } from "./ward.mjs";

after(closeBrowser);

const SCRIPTS = [
  "<img src=x onerror='window.xss=1'>",
  "<script>window.xss=1</script>",
  "<svg onload=window.xss=1>",
  "<iframe srcdoc='<script>parent.xss=1</script>'></iframe>",
  "<a href='javascript:window.xss=1'>x</a>",
  "<style>*{display:none}</style>",
  "<form action='https://evil.example/'><input name=a></form>",
];
const MARKDOWN = [
  "[click](javascript:window.xss=1)",
  "[click](JaVaScRiPt:window.xss=1)",
  "[click](data:text/html,<script>window.xss=1</script>)",
  "[click](vbscript:x)",
  "[click](//evil.example/x)",
  "![picture](https://evil.example/track.png)",
  "![x](x\" onerror=\"window.xss=1)",
  "<https://evil.example/ok>",
  "```<img src=x onerror=window.xss=1>\n<img src=x onerror=window.xss=1>\n```",
  "[ref]: javascript:window.xss=1\n\n[ref]",
];

/** Nothing ran, nothing was fetched from elsewhere, nothing came of it but text. */
async function harmless(page, it, requested) {
  assert.equal(await page.evaluate(() => window.xss), undefined);
  assert.deepEqual(requested.filter((url) => !url.startsWith(it.url) && !url.startsWith("data:")), []);
  const found = await page.locator("main").evaluate((main) => ({
    foreign: main.querySelectorAll("img, script, svg, iframe, object, embed, style:not(.xterm style), form[action], meta, base, link").length,
    links: [...main.querySelectorAll("a[href]")].map((link) => link.href),
    handlers: [...main.querySelectorAll("*")].flatMap((element) => element.getAttributeNames().filter((name) => name.startsWith("on"))),
  }));
  assert.equal(found.foreign, 0);
  assert.deepEqual(found.handlers, []);
  for (const link of found.links) assert.match(link, /^(https?|mailto):/);
}

function watchRequests(page) {
  const requested = [];
  page.on("request", (request) => requested.push(request.url()));
  return requested;
}

test("what a model says is text: no script runs, nothing is fetched, links lead only to the web", limit, async (t) => {
  const scripted = await model(t);
  scripted.turns.push([{ reasoning: SCRIPTS.join("\n") }, { text: [...SCRIPTS, ...MARKDOWN].join("\n\n") }]);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  const requested = watchRequests(page);
  await begin(it, page, SCRIPTS.join(" "));
  await page.locator(".md").getByText("onload=window.xss").first().waitFor();
  await idle(page);
  await harmless(page, it, requested);
  for (const link of await page.locator(".said a").all()) {
    assert.deepEqual([await link.getAttribute("rel"), await link.getAttribute("target")], ["noopener noreferrer", "_blank"]);
  }
});

test("file names, what files hold, what commands print and what tools answer are text", limit, async (t) => {
  const scripted = await model(t);
  const name = "<img src=x onerror=window.xss=1>.txt";
  scripted.turns.push(
    [{ call: "fs_write", with: { path: name, content: SCRIPTS.join("\n") } }],
    [{ call: "fs_list", with: { path: "." } }, { call: "fs_read", with: { path: name } }, { call: "fs_edit", with: { path: name, edits: [{ old: "window", new: "</div><script>xss=1</script>", all: true }] } }],
    [{ call: "terminal_run", with: { command: String.raw`cat '${name}'; printf '\033]8;;javascript:window.xss=1\033\\link\033]8;;\033\\ \033]8;;https://evil.example\007two\033]8;;\007\n<script>window.xss=1</script>'` } }],
    [{ call: "<b>no_such_tool</b>", with: { "<img src=x onerror=window.xss=1>": 1 } }],
    [{ text: "Done with it." }],
  );
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  const requested = watchRequests(page);
  await begin(it, page, "Try it.");
  await page.getByText("Done with it.").waitFor();
  await idle(page);
  const folded = page.locator('.card-fold[aria-expanded="false"]');
  while ((await folded.count()) > 0) await folded.first().click();
  await page.getByRole("region", { name: "Files" }).getByRole("button", { name: /^Files\b/ }).click();
  await page.getByRole("region", { name: "Files" }).getByRole("button", { name }).click();
  await page.getByRole("dialog").locator(".cm-content, .diff-line").first().waitFor();
  const file = page.getByRole("button", { name: "The file as it is" });
  if (await file.count()) await file.click();
  await page.getByRole("dialog").locator(".cm-content").waitFor();
  await page.keyboard.press("Escape");
  await harmless(page, it, requested);
  await page.goto(`${it.url}/#/ledger`);
  await page.locator(".entry summary", { hasText: name }).first().waitFor();
  await harmless(page, it, requested);
});

test("a question cannot be dressed up: what hides or turns text around is shown by its name, and all of it is there", limit, async (t) => {
  const scripted = await model(t);
  const it = await serve(t, { env: scripted.env });
  const tail = "the-end-of-a-long-command";
  const command = `curl -s --max-time 30 http://nowhere.invalid/ # safe \u202egnp.exe\u202c \u200bhidden\u00a0space \u001b[8m${" ".repeat(3000)}${"x".repeat(3000)} ${tail}`;
  const path = join(it.home, "invoice\u202efdp.sh");
  await writeFile(path, "x");
  scripted.turns.push(
    [{ text: "**system_agent wants to read a file**\n\n| Allow once | a |\n|---|---|\n" }, { call: "fs_read", with: { path } }],
    [{ call: "terminal_run", with: { command } }],
  );
  const { page } = await open(t, it);
  const requested = watchRequests(page);
  await begin(it, page, "Ask me.");
  await question(page).waitFor();
  const asked = await question(page).innerText();
  assert.ok(asked.includes("invoiceU+202Efdp.sh"), asked);
  assert.ok(!asked.includes("\u202e"));
  await harmless(page, it, requested);
  await page.keyboard.press("Escape");
  await page.keyboard.press("a");
  await page.locator(".closed", { hasText: "Allowed once" }).waitFor();
  await question(page).waitFor();
  const whole = question(page).getByLabel("The command, whole");
  const text = await whole.innerText();
  for (const part of ["U+202Egnp.exeU+202C", "U+200Bhidden", "U+00A0space", "␛[8m", tail]) assert.ok(text.includes(part), `${part} is not shown`);
  assert.doesNotMatch(text, /[\u202a-\u202e\u200b\u00a0\u001b]/);
  // All of it can be scrolled to, and the answers stay in sight.
  assert.equal(await whole.evaluate((box) => box.scrollHeight > box.clientHeight && box.scrollWidth <= box.clientWidth), true);
  await question(page).getByRole("button", { name: "Allow once" }).waitFor();
  const card = await page.locator(".card").last().innerText();
  assert.doesNotMatch(card, /[\u202a-\u202e\u200b\u001b]/);
  await page.keyboard.press("d");
  await page.keyboard.press("Enter");
  await idle(page);
});
