// A conversation in the side bar: an agent with the offline model reads, edits, runs and asks, and all of
// it happens in the window.

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, limit, open, stage } from "./workbench.mjs";

let at, ward, bench, end;
before(async () => ({ at, ward, bench, end } = await stage()), limit);
after(() => end());

async function say(chat, text) {
  const before = await chat.locator(".me-row").count();
  await chat.getByRole("textbox", { name: "Message" }).fill(text);
  await chat.getByRole("textbox", { name: "Message" }).press("Enter");
  await chat.locator(".me-row").nth(before).waitFor();
}

const idle = (chat) => chat.locator('.talk[data-running="false"]').waitFor();

async function drop(chat, ...uris) {
  await chat.evaluate((uris) => {
    const data = new DataTransfer();
    data.setData("text/uri-list", uris);
    window.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
  }, uris.join("\r\n"));
}

/** Waits until this is what is being written. */
async function written(window, chat, wanted) {
  const box = chat.getByRole("textbox", { name: "Message" });
  for (let tries = 0; (await box.inputValue()) !== wanted; tries++) {
    assert.ok(tries < 100, await box.inputValue());
    await window.page.waitForTimeout(100);
  }
}

// First: later on, this workbench opens no workspace file with its folders any more.
test("in a window with several folders a file is named whole, until a conversation acts in its folder", limit, async (t) => {
  const [left, right] = [await folder(join(at, "left"), { "x.txt": "left\n" }), await folder(join(at, "right"), { "x.txt": "right\n" })];
  const both = join(at, "both.code-workspace");
  await writeFile(both, JSON.stringify({ folders: [{ path: left }, { path: right }] }));
  const window = await open(t, bench, both);
  await window.command("Ward: Open Chat");
  const chat = await window.chat("textarea");
  const { runtime_id } = await ward.runtime(right);
  await ward.act(runtime_id, "editor.open", { path: "x.txt", selection: { start: { line: 1 }, end: { line: 1, column: 6 } } });
  // As the explorer of a window that is used from afar names it.
  await drop(chat, `vscode-remote://localhost${right}/x.txt`);
  await written(window, chat, `\`${right}/x.txt\` `);
  await window.command("Ward: Add to Chat");
  await written(window, chat, `\`${right}/x.txt\`\n\`${right}/x.txt\`, line 1:\n\`\`\`plaintext\nright\n\`\`\`\n`);
  await say(chat, "read x.txt");
  await idle(chat);
  await chat.locator(".said").getByText("right").first().waitFor();
  await drop(chat, `file://${right}/x.txt`, `file://${left}/x.txt`);
  await written(window, chat, `\`x.txt\` \`${left}/x.txt\` `);
});

test("an agent reads, edits and runs in the window, and what it asks is answered in the webview", limit, async (t) => {
  const work = await folder(join(at, "talk"), { "list.txt": "one\ntwo\nthree\n" });
  const window = await open(t, bench, work);
  const { page } = window;
  await window.command("Ward: Open Chat");
  const chat = await window.chat("textarea");
  await ward.runtime(work);
  await window.shot("chat");
  // The token is nowhere in the page.
  assert.ok(!(await chat.content()).includes(ward.token));

  await say(chat, "read list.txt");
  await idle(chat);
  await chat.locator(".said").getByText("three").first().waitFor();

  // The person has the file open, and sees the edit in it.
  await window.command("Go to File");
  await page.locator(".quick-input-widget input").first().fill("list.txt");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "list.txt" }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".view-line", { hasText: "two" }).waitFor();
  await say(chat, "in list.txt replace two with 2");
  await page.locator(".view-line", { hasText: /^2$/ }).waitFor();
  await idle(chat);
  assert.equal(await readFile(join(work, "list.txt"), "utf8"), "one\n2\nthree\n");
  await window.shot("edited");
  // It can be undone, as the person's own edits can.
  await page.locator(".view-line", { hasText: "three" }).click();
  await page.keyboard.press("Control+z");
  await page.locator(".view-line", { hasText: "two" }).waitFor();
  assert.equal(await window.text(), "one\ntwo\nthree\n");

  // What is not saved is what an agent reads.
  await say(chat, "read list.txt");
  await idle(chat);
  await chat.locator(".said").last().getByText("two").waitFor();

  // A terminal is not confined, so it asks; the answer is given in the webview.
  await say(chat, "run `echo begun; sleep 1; echo over; exit 3`");
  const ask = chat.locator('.ask[data-armed="true"]').first();
  await ask.waitFor();
  await window.shot("question");
  await window.status(/Ward: 1 waiting/).waitFor();
  await ask.getByRole("button", { name: "Allow once" }).click();
  await idle(chat);
  await page.locator(".terminal-tab, .terminal-tabs-entry, .single-terminal-tab, .xterm", {}).first().waitFor();
  await window.shot("terminal");
  const { sessions } = (await ward.call("GET", "/sessions")).body;
  const told = await ward.told(`/sessions/${sessions[0].session_id}/events?from=0`, ({ event, data }) => event === "tool.output" && JSON.stringify(data).includes("begun"));
  const result = JSON.parse(told.at(-1).data.output);
  assert.deepEqual([result.exit_code, result.stdout], [3, "begun\nover\n"]);
  assert.equal(sessions[0].workspace, work);
});

test("what is being written is there again when the chat was hidden, and gone once it is sent", limit, async (t) => {
  const work = await folder(join(at, "draft"), { "a.txt": "a\n" });
  const window = await open(t, bench, work);
  await window.command("Ward: Open Chat");
  const box = async () => (await window.chat("textarea")).getByRole("textbox", { name: "Message" });
  /** Shows the explorer, until the page is gone, and then the chat again. */
  const away = async () => {
    await window.command("View: Show Explorer");
    for (let tries = 0; (await Promise.all(window.page.frames().map((frame) => frame.locator("textarea[aria-label=Message]").count().catch(() => 0)))).some((count) => count > 0); tries++) {
      assert.ok(tries < 200, "the page is still there");
      await window.page.waitForTimeout(100);
    }
    await window.command("Ward: Open Chat");
  };
  await (await box()).fill("half a th");
  await away();
  assert.equal(await (await box()).inputValue(), "half a th");
  // In a conversation as well, apart from what was begun elsewhere.
  await say(await window.chat("textarea"), "read a.txt");
  await idle(await window.chat("textarea"));
  await (await box()).fill("and the rest");
  await away();
  assert.equal(await (await box()).inputValue(), "and the rest");
  await say(await window.chat("textarea"), "list the files");
  await idle(await window.chat("textarea"));
  await away();
  assert.equal(await (await box()).inputValue(), "");
});

test("a file that is dragged into the chat, or added to it, is named in the message; the page is as dark as the editor", limit, async (t) => {
  const work = await folder(join(at, "dragged"), { "src/a.txt": "a\n" });
  await bench.set({ "workbench.colorTheme": "Default Dark Modern" });
  t.after(() => bench.set({ "workbench.colorTheme": "Default Light Modern" }));
  const window = await open(t, bench, work);
  await window.command("Ward: Open Chat");
  const chat = await window.chat("textarea");
  await chat.locator('html[data-theme="dark"]').waitFor();
  await chat.getByText(work).first().waitFor();
  await drop(chat, `file://${work}/src/a.txt`, "file:///etc/passwd");
  const value = (wanted) => written(window, chat, wanted);
  await value("`src/a.txt` ");
  await window.page.locator(".notification-toast", { hasText: "in the folders of this window: /etc/passwd" }).waitFor();
  const { runtime_id } = await ward.runtime(work);
  await ward.act(runtime_id, "editor.open", { path: "src/a.txt", selection: { start: { line: 1 }, end: { line: 1, column: 2 } } });
  await window.command("Ward: Add to Chat");
  await value("`src/a.txt`\n`src/a.txt`, line 1:\n```plaintext\na\n```\n");
  await window.shot("dark");
});

test("a page that could not be had is tried again by a button, and when the chat is shown again", limit, async (t) => {
  const kept = join(at, "vscode/User/globalStorage/ward.ward/page");
  /** No page can be kept there. */
  const spoil = async () => {
    await rm(kept, { recursive: true, force: true });
    await writeFile(kept, "");
  };
  await spoil();
  const window = await open(t, bench, await folder(join(at, "unhad")));
  await window.command("Ward: Open Chat");
  const again = (await window.chat("#connect")).getByRole("button", { name: "Try Again" });
  await again.waitFor();
  await window.shot("unhad");
  await rm(kept);
  await again.click();
  await window.chat("textarea");
  await spoil();
  const other = await open(t, bench, await folder(join(at, "unhad-too")));
  await other.command("Ward: Open Chat");
  await (await other.chat("#connect")).getByRole("button", { name: "Try Again" }).waitFor();
  await rm(kept);
  await other.command("View: Show Explorer");
  await other.page.locator(".webview.ready").waitFor({ state: "hidden" });
  await other.command("Ward: Open Chat");
  await other.chat("textarea");
});
