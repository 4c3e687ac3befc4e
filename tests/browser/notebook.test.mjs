// A notebook in the page: its replica, edited at once and offline, and the runtime on it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import { between } from "./between.mjs";
import { closeBrowser, idle, limit, open, say, serve, shot, watched } from "./ward.mjs";

after(closeBrowser);

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const cell = (cell_id, source, place) => ({ kind: "cell.created", cell_id, cell_type: "code", place, source });
const html = (text) => ({ data: { "text/html": { inline: text } } });

/** A notebook with these sources in cells a, b, c …; ways to look at it and to write to it from outside. */
async function notebook(it, ...sources) {
  const { body: made } = await it.call("POST", "/notebooks", { title: "Sums" });
  const at = `/notebooks/${made.id}`;
  const append = async (...events) => {
    const { status, body } = await it.call("POST", `${at}/events`, { events });
    assert.equal(status, 200, JSON.stringify(body));
  };
  if (sources.length) await append(...sources.map((source, index) => cell("abcdefg"[index], source, "FKPUZejo"[index])));
  const state = async () => (await it.call("GET", at)).body.state;
  /** Waits until what Ward has is as wanted: looks whenever something happened. */
  const until = async (wanted) => {
    const stop = new AbortController();
    const response = await fetch(`${it.url}${at}/events?from=0`, { headers: { authorization: `Bearer ${it.token}` }, signal: stop.signal });
    try {
      for await (const _ of response.body) {
        const now = await state();
        if (wanted(now)) return now;
      }
    } finally {
      stop.abort();
    }
    throw new Error("the notebook is gone");
  };
  return { ...made, at, append, state, until };
}

/** A runtime that is not in the page, over HTTP: it answers nothing by itself. */
async function outside(it, book, more = {}) {
  const asked = { runtime_id: "native-echo", runtime_type: "echo", client_id: book.owner, capabilities: { can_execute_code: true, confined: true }, ...more };
  const { status, body } = await it.call("POST", `${book.at}/runtimes`, asked);
  assert.equal(status, 201, JSON.stringify(body));
  body.say = async (...events) => {
    const response = await fetch(`${it.url}${book.at}/events`, {
      method: "POST",
      headers: { authorization: `Bearer ${it.token}`, "content-type": "application/json", "x-ward-runtime": body.token },
      body: JSON.stringify({ events }),
    });
    assert.equal(response.status, 200, await response.text());
  };
  return body;
}

const show = async (page, it, book) => {
  await page.goto(`${it.url}/notebook#/notebook/${book.id}`);
  await page.getByRole("region", { name: "Notebook" }).waitFor();
};
const saved = (page) => page.locator('[data-saved="true"]').waitFor();
const source = (page, number) => page.getByRole("textbox", { name: `Source of cell ${number}`, exact: true });
const text = (page, number) => source(page, number).evaluate((box) => [...box.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n"));
const start = async (page, name = /in this page$/) => {
  await page.getByRole("button", { name }).click();
  await page.getByRole("button", { name: "Stop the one in this page" }).waitFor();
};
const runtime = (page, id, state = "ready") => page.locator(`[data-runtime="${id}"][data-state="${state}"]`).waitFor();
const says = (page, number, words) => page.getByRole("group", { name: `Output of cell ${number}`, exact: true }).getByText(words).waitFor();
/** So many edits of this tab's are in the browser's database. */
const kept = (page, edits) => page.waitForFunction((edits) => new Promise((resolve) => {
  const request = indexedDB.open("ward-notebooks");
  request.onsuccess = () => {
    const all = request.result.transaction("lives").objectStore("lives").getAll();
    all.onsuccess = () => {
      request.result.close();
      resolve(all.result.some((live) => JSON.parse(live).pending.length === edits));
    };
  };
}), edits);
const textOf = (state, id) => state.cells[id]?.source;

test("a cell is written and run on the page's own runtime: one store and one connection, and the gate decides", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it);
  const { page } = await open(t, it);
  const followed = [];
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => payload.includes(`"${book.at}/events`) && followed.push(socket)));
  await page.getByRole("link", { name: "Notebooks" }).click();
  await page.getByRole("link", { name: "Sums" }).click();
  await page.getByRole("region", { name: "Notebook" }).waitFor();
  await page.getByRole("button", { name: "+ Code" }).click();
  await source(page, 1).pressSequentially("1 + 1");
  await start(page);
  await runtime(page, "browser-echo");
  await source(page, 1).press("Shift+Enter");
  await says(page, 1, "Echo: 1 + 1");
  // On to the next cell, which is there for it.
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Source of cell 2");
  await saved(page);
  const { cells, executions, sessions } = await book.state();
  const [ran] = executions;
  assert.equal(ran.state, "completed");
  assert.deepEqual(cells[ran.cell_id].outputs, [{ type: "result", bundle: { data: { "text/plain": { inline: "Echo: 1 + 1" } } } }]);
  assert.deepEqual(sessions.map((one) => [one.runtime_id, one.client_id]), [["browser-echo", book.owner]]);
  assert.equal(followed.length, 1, "the page and its runtime have one connection");
  const { body: { entries } } = await it.call("GET", "/ledger?limit=100");
  assert.ok(entries.some((entry) => entry.kind === "decision" && entry.action_id.startsWith("cell-")));
  await shot(page, "notebook");
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }));
  assert.deepEqual(violations.map(({ id, nodes }) => [id, ...nodes.map((node) => node.html.slice(0, 160))]), []);
});

test("cells are added, moved, deleted, and are of another type; all of it is Ward's", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "one", "two");
  const { page } = await open(t, it);
  await show(page, it, book);
  await page.getByRole("button", { name: "Move cell 2 up" }).click();
  await page.getByRole("button", { name: "+ Text" }).click();
  await source(page, 3).pressSequentially("# A *heading*");
  await source(page, 3).press("Shift+Enter");
  await page.locator(".nb-markdown em", { hasText: "heading" }).waitFor();
  await page.getByRole("textbox", { name: "Title of the notebook" }).fill("Other sums");
  await page.getByRole("textbox", { name: "Title of the notebook" }).press("Enter");
  await page.getByLabel("Type of cell 2").selectOption("sql");
  await page.getByRole("button", { name: "Delete cell 4" }).click();
  await saved(page);
  const { title, cells } = await book.until((now) => now.title === "Other sums" && Object.keys(now.cells).length === 3);
  const order = Object.values(cells).sort((a, b) => (a.place < b.place ? -1 : 1));
  assert.equal(title, "Other sums");
  assert.deepEqual(order.map((one) => [one.cell_type, one.source]), [["code", "two"], ["sql", "one"], ["markdown", "# A *heading*"]]);
});

test("two tabs see each other's edits while both type, and the runtime goes from one to the other and back", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "");
  const { context, page: one } = await open(t, it);
  await show(one, it, book);
  const two = await watched(t, context);
  await show(two, it, book);
  await source(one, 1).click();
  await source(two, 1).click();
  await Promise.all([source(one, 1).pressSequentially("left "), source(two, 1).pressSequentially("right ")]);
  await saved(one);
  await saved(two);
  const whole = await book.until((now) => textOf(now, "a").length === "left right ".length);
  const letters = (words) => [...words].sort().join("");
  assert.equal(letters(textOf(whole, "a")), letters("left right "), "nothing is lost and nothing comes twice");
  for (const page of [one, two]) await page.waitForFunction((wanted) => document.querySelector(".cm-content")?.textContent === wanted, textOf(whole, "a"));

  await start(one);
  await runtime(two, "browser-echo");
  await start(two, "Take over in this page");
  await one.locator('[data-ending="displaced"]').waitFor();
  await source(one, 1).press("Control+Enter");
  await says(one, 1, "Echo:");
  await says(two, 1, "Echo:");
  const { sessions } = await book.state();
  assert.deepEqual(sessions.map((session) => session.ended ?? "on"), ["displaced", "on"]);
  await start(one, "Take over in this page");
  await two.locator('[data-ending="displaced"]').waitFor();
  await book.until(({ sessions }) => sessions.filter((session) => session.state !== "terminated").length === 1);
});

test("ten tabs of one browser follow, edit and run, and each sees what the others did", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "", "", "", "");
  const other = await notebook(it, "", "", "", "");
  const { context, page: chat } = await open(t, it);
  const tabs = [];
  for (const one of [book, book, book, book, other, other, other, other]) {
    const tab = await watched(t, context);
    await show(tab, it, one);
    await saved(tab);
    tabs.push(tab);
  }
  const second = await watched(t, context);
  await second.goto(`${it.url}/`);
  await second.getByRole("textbox", { name: "Message" }).waitFor();
  await start(tabs[0]);
  await start(tabs[4]);
  for (const [index, tab] of tabs.entries()) {
    const number = (index % 4) + 1;
    const sees = tabs[index < 4 ? (index + 1) % 4 : 4 + ((index + 1) % 4)];
    await source(tab, number).pressSequentially(`tab ${index}`);
    await source(tab, number).press("Control+Enter");
    await says(sees, number, `Echo: tab ${index}`);
    await saved(tab);
  }

  // Beside them, a conversation that is in two tabs too.
  await say(chat, "read README.md");
  await idle(chat);
  await second.goto(chat.url());
  await idle(second);
  await say(second, "list the files");
  await chat.locator(".me-row").nth(1).waitFor();
  await idle(chat);
});

test("where no websocket can be had, a notebook is followed all the same", limit, async (t) => {
  const it = await serve(t);
  const line = await between(t, it);
  line.holds = ({ url }) => url === "/events";
  const book = await notebook(it, "x");
  const { page } = await open(t, it);
  await show(page, { url: line.url }, book);
  await saved(page);
  await book.append({ kind: "cell.source", cell_id: "a", splices: [{ at: 1, insert: "y" }] });
  await source(page, 1).getByText("xy").waitFor();
  assert.ok(line.asked.some((asked) => asked.startsWith(`GET ${book.at}/events?`)));
});

test("a runtime elsewhere displaces the page's, runs what the page asks for, and gives way again", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "from the page");
  const { page } = await open(t, it);
  await show(page, it, book);
  await start(page);
  await runtime(page, "browser-echo");
  const env = { ...process.env, HOME: it.home, WARD_URL: it.url, WARD_TOKEN: it.token };
  const native = spawn(process.env.WARD_BIN, ["notebook", "agent", "--notebook", book.id, "--client-id", book.owner, "--kernel", "echo"], { env, stdio: "inherit" });
  const ended = once(native, "exit");
  t.after(() => native.kill("SIGKILL"));
  await page.locator('[data-ending="displaced"]').waitFor();
  await runtime(page, "native-echo");
  await page.getByRole("button", { name: "Run cell 1" }).click();
  await says(page, 1, "Echo: from the page");
  const { executions, sessions } = await book.state();
  const ran = sessions.find((session) => session.session_id === executions.at(-1).session_id);
  assert.equal(ran.runtime_id, "native-echo");
  await start(page, "Take over in this page");
  await ended;
  await runtime(page, "browser-echo");
  await page.getByRole("button", { name: "Run cell 1" }).click();
  await book.until(({ executions }) => executions.length === 2 && executions[1].state === "completed");
});

test("what is edited offline is kept, rebased on what others did meanwhile, and cannot run until then", limit, async (t) => {
  const it = await serve(t);
  const line = await between(t, it);
  const book = await notebook(it, "middle");
  const { page } = await open(t, it);
  await show(page, { url: line.url }, book);
  await start(page);
  await runtime(page, "browser-echo");
  await saved(page);
  line.cut();
  await page.locator('[data-line="lost"]').waitFor();
  await source(page, 1).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(" end");
  assert.equal(await text(page, 1), "middle end");
  await page.getByText("kept in this browser").waitFor();
  assert.equal(await page.getByRole("button", { name: "Run cell 1" }).isDisabled(), true);
  await book.append({ kind: "cell.source", cell_id: "a", splices: [{ at: 0, insert: "start " }] });
  assert.equal(textOf(await book.state(), "a"), "start middle");
  line.mend();
  await saved(page);
  assert.equal(await text(page, 1), "start middle end");
  assert.equal(textOf(await book.state(), "a"), "start middle end");
  await page.getByRole("button", { name: "Run cell 1" }).click();
  await says(page, 1, "Echo: start middle end");
});

test("a browser that is offline runs nothing, also where what Ward tells still comes, and nothing later", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "x");
  await outside(it, book);
  const { context, page } = await open(t, it);
  await show(page, it, book);
  await runtime(page, "native-echo", "starting");
  await saved(page);
  await context.setOffline(true);
  await page.locator('[data-line="lost"]').waitFor();
  assert.equal(await page.getByRole("button", { name: "Run cell 1" }).isDisabled(), true);
  await source(page, 1).press("Shift+Enter");
  await page.getByText("There is no connection to Ward just now. Cells can be edited, but not run.").waitFor();
  await context.setOffline(false);
  await saved(page);
  assert.deepEqual((await book.state()).executions, []);

  // Nothing arrives at Ward, and the browser does not know it.
  const posts = (route) => (route.request().method() === "POST" ? route.abort() : route.continue());
  await page.route("**/events", posts);
  await page.getByRole("button", { name: "Run cell 1" }).click();
  await page.getByText("A change was not taken: The connection was lost before Ward confirmed it.").waitFor();
  await page.unroute("**/events", posts);
  await source(page, 1).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("y");
  await saved(page);
  const now = await book.state();
  assert.deepEqual([textOf(now, "a"), now.executions], ["xy", []]);
});

test("a long notebook has an editor where somebody looks, and what its other cells say is there all the same", limit, async (t) => {
  const it = await serve(t);
  const many = 300;
  const cells = Array.from({ length: many }, (_, at) => ({ id: `c${at}`, cell_type: "code", metadata: {}, execution_count: null, outputs: [], source: `x = ${at}\n` }));
  const { body: book } = await it.call("POST", "/notebooks", { ipynb: { nbformat: 4, nbformat_minor: 5, metadata: {}, cells } });
  const { page } = await open(t, it);
  await show(page, it, book);
  await saved(page);
  const editors = await page.locator(".nb .cm-editor").count();
  assert.ok(editors > 0 && editors < many / 4, `${editors} of ${many} have an editor`);
  assert.equal(await source(page, many).textContent(), `x = ${many - 1}\n`);
  const height = () => source(page, many).evaluate((box) => box.closest(".nb-editor").getBoundingClientRect().height);
  const before = await height();

  // Somebody goes there with the keyboard, and writes.
  await page.getByRole("combobox", { name: `Type of cell ${many}`, exact: true }).focus();
  await source(page, many).focus();
  await page.locator(`section[data-cell="c${many - 1}"] .cm-content:focus`).waitFor();
  assert.equal(await height(), before, "nothing moves where one becomes an editor");
  await page.keyboard.press("Control+End");
  await page.keyboard.type("print(x)");
  await saved(page);
  const { body } = await it.call("GET", `/notebooks/${book.id}`);
  assert.equal(body.state.cells[`c${many - 1}`].source, `x = ${many - 1}\nprint(x)`);
  assert.equal(await text(page, many), `x = ${many - 1}\nprint(x)`);
});

test("a file is opened as Python writes it and goes out so, and one that is no JSON says where", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  const file = (number) => `{"nbformat": 4, "nbformat_minor": 5, "cells": [],\n "metadata": {"say": "NaN", "number": ${number}}}`;
  const choose = (name, text) => page.getByLabel("A notebook file").setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(text) });
  await page.goto(`${it.url}/#/notebooks`);
  await choose("half.ipynb", "{");
  await page.getByText("half.ipynb cannot be opened: The file is no JSON: line 1, column 1: EOF while parsing an object.").waitFor();
  await choose("none.ipynb", file("None"));
  await page.getByText("none.ipynb cannot be opened: The file is no JSON: line 2,").waitFor();
  const number = "[9007199254740993,123456789012345678901234567890,1e400,NaN,-Infinity]";
  await choose("large.ipynb", file(number));
  await page.getByRole("region", { name: "Notebook", exact: true }).waitFor();
  const { body } = await it.call("GET", "/notebooks");
  const made = body.notebooks.find(({ title }) => title === "large");
  const response = await fetch(`${it.url}/notebooks/${made.id}/ipynb`, { headers: { authorization: `Bearer ${it.token}` } });
  assert.ok((await response.text()).includes(`"number":${number}`));
});

test("edits outlive a page that is closed while offline, and are sent once", limit, async (t) => {
  const it = await serve(t);
  const line = await between(t, it);
  const book = await notebook(it, "middle");
  const { context, page } = await open(t, it);
  await show(page, { url: line.url }, book);
  await saved(page);
  line.cut();
  await page.locator('[data-line="lost"]').waitFor();
  await source(page, 1).click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(" end");
  await page.getByRole("button", { name: "+ Code" }).click();
  await kept(page, 5);
  await page.close({ runBeforeUnload: true });
  await book.append({ kind: "cell.source", cell_id: "a", splices: [{ at: 0, insert: "start " }] });
  line.mend();
  const again = await watched(t, context);
  await show(again, { url: line.url }, book);
  await saved(again);
  assert.equal(await text(again, 1), "start middle end");
  const now = await book.until((now) => Object.keys(now.cells).length === 2);
  assert.equal(textOf(now, "a"), "start middle end");
  await again.reload();
  await saved(again);
  assert.equal(textOf(await book.state(), "a"), "start middle end");
});

test("what several tabs left behind while offline is sent by the next one, each edit once", limit, async (t) => {
  const it = await serve(t);
  const line = await between(t, it);
  const book = await notebook(it, "");
  const { context, page } = await open(t, it);
  const tabs = [page, await watched(t, context)];
  for (const tab of tabs) {
    await show(tab, { url: line.url }, book);
    await saved(tab);
  }
  line.cut();
  for (const [index, tab] of tabs.entries()) {
    await tab.locator('[data-line="lost"]').waitFor();
    await source(tab, 1).click();
    await tab.keyboard.type(["left", "right"][index]);
    await kept(tab, ["left", "right"][index].length);
    await tab.close({ runBeforeUnload: true });
  }
  line.mend();
  const next = await watched(t, context);
  await show(next, { url: line.url }, book);
  const now = await book.until((now) => textOf(now, "a").length === "leftright".length);
  assert.match(textOf(now, "a"), /^(leftright|rightleft)$/);
  await saved(next);
});

/** A page whose own runtime has begun to run a cell: that it began goes through, what it says does not. */
async function inMidExecution(t) {
  const it = await serve(t);
  const line = await between(t, it);
  const book = await notebook(it, "x");
  const { page } = await open(t, it);
  await show(page, { url: line.url }, book);
  await start(page);
  await runtime(page, "browser-echo");
  await saved(page);
  line.holds = (asked, body) => asked.method === "POST" && /"output\.|"execution\.completed"/.test(body);
  const held = once(line.told, "held");
  await page.getByRole("button", { name: "Run cell 1" }).click();
  await held;
  return { line, book, page };
}

test("a page that is closed in mid-execution leaves it failed with a reason", limit, async (t) => {
  const { book, page } = await inMidExecution(t);
  await page.close({ runBeforeUnload: true });
  const now = await book.until(({ executions }) => executions.at(-1).state === "failed");
  const { failed } = now.executions.at(-1);
  assert.deepEqual(failed, { kind: "runtime_lost", message: "The page that ran this was closed while it worked on it." });
  assert.deepEqual(now.sessions.map((session) => session.ended), ["shutdown"]);
});

test("a page that is loaded again goes on with its session, and what it was cut off in is not begun again", limit, async (t) => {
  const { line, book, page } = await inMidExecution(t);
  line.holds = () => false;
  await page.reload();
  await runtime(page, "browser-echo");
  const now = await book.until(({ executions }) => executions.at(-1).state === "failed");
  assert.equal(now.executions.at(-1).failed.message, "The runtime ended while this cell ran. Nobody knows how far it came.");
  assert.equal(now.sessions.length, 1, "it is the same session");
  await page.getByRole("button", { name: "Run cell 1" }).click();
  await says(page, 1, "Echo: x");
});

test("a page's runtime that is displaced in mid-run says so, also where its words are refused before it is told", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "x");
  const { page } = await open(t, it);
  let holds = false;
  const held = [];
  await page.routeWebSocket("**/events", (socket) => {
    const ward = socket.connectToServer();
    ward.onMessage((message) => (holds ? held.push(() => socket.send(message)) : socket.send(message)));
  });
  await show(page, it, book);
  await start(page);
  await runtime(page, "browser-echo");
  await saved(page);
  // What it says of its run waits until it has no leave to say it; and so does that it has none.
  const waits = new Promise((resolve) => {
    void page.route(`**${book.at}/events`, (route) => (!holds && route.request().postData().includes('"output.') ? resolve(route) : route.fallback()));
  });
  await page.getByRole("button", { name: "Run cell 1" }).click();
  const said = await waits;
  holds = true;
  await outside(it, book);
  let refused = 0;
  // With others, and then alone.
  const twice = page.waitForResponse((response) => response.status() === 403 && ++refused === 2);
  await said.continue();
  await twice;
  holds = false;
  for (const tell of held) tell();
  await page.locator('[data-ending="displaced"]').waitFor();
});

test("what is refused is let go of once and said, and what nobody looked at is tried again, ever later", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "x");
  const { page } = await open(t, it);
  await show(page, it, book);
  await saved(page);
  let kind = "forbidden";
  let asked = [];
  await page.route(`**${book.at}/events`, (route) => {
    asked.push(Date.now());
    return route.fulfill({ status: 403, json: { error: "Not now.", code: 403, kind } });
  });
  await source(page, 1).click();
  await page.keyboard.type("yz");
  await page.getByText("A change was not taken: Not now.").first().waitFor();
  await saved(page);
  assert.equal(await text(page, 1), "x");
  assert.ok(asked.length <= 4, `${asked.length} for two changes`);

  kind = "wrong_origin";
  asked = [];
  await page.keyboard.type("y");
  await page.waitForResponse(() => asked.length === 3);
  assert.ok(asked[1] - asked[0] > 900 && asked[2] - asked[1] > 1900, `${asked}`);
  await page.unroute(`**${book.at}/events`);
  await saved(page);
  assert.match(textOf(await book.state(), "a"), /^(xy|yx)$/);
});

test("a runtime in the page ends when another notebook is shown, and is not left behind", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "x");
  const other = await notebook(it, "y");
  const { page } = await open(t, it);
  await show(page, it, book);
  await start(page);
  await runtime(page, "browser-echo");
  await page.evaluate((id) => (location.hash = `#/notebook/${id}`), other.id);
  await book.until(({ sessions }) => sessions[0].ended === "shutdown");
  await runtime(page, "none", "none");
  await page.goBack();
  await start(page);
  await page.getByRole("button", { name: "Run cell 1" }).click();
  await says(page, 1, "Echo: x");
});

test("a runtime's name comes from the address, then from what the browser remembers; whose it is, from neither", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "x");
  const { page } = await open(t, it);
  const begun = async (query) => {
    await page.goto(`${it.url}/notebook${query}#/notebook/${book.id}`);
    await start(page);
    const { sessions } = await book.until(({ sessions }) => sessions.at(-1)?.state === "ready");
    await page.getByRole("button", { name: "Stop the one in this page" }).click();
    await runtime(page, "none", "none");
    const { runtime_id, client_id } = sessions.at(-1);
    return [runtime_id, client_id];
  };
  assert.deepEqual(await begun(""), ["browser-echo", book.owner]);
  await page.evaluate(() => {
    for (const [name, value] of Object.entries({ runtime_id: "remembered", client_id: "mallory", token: "forged" })) localStorage.setItem(`ward.${name}`, value);
  });
  assert.deepEqual(await begun("?client_id=mallory&token=forged"), ["remembered", book.owner]);
  assert.deepEqual(await begun("?runtime_id=named"), ["named", book.owner]);
});

test("HTML that a cell made is shown apart: it runs nothing, fetches nothing and reaches nothing of the page", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "x");
  const elsewhere = createServer((asked, answer) => {
    elsewhere.emit("asked", asked.url);
    answer.end();
  });
  const reached = [];
  elsewhere.on("asked", (url) => reached.push(url)).listen(0, "127.0.0.1");
  await once(elsewhere, "listening");
  t.after(() => elsewhere.close());
  const evilAt = `http://127.0.0.1:${elsewhere.address().port}`;
  const native = await outside(it, book);
  await book.append({ kind: "execution.requested", execution_id: "r", cell_id: "a" });
  await book.until(({ executions }) => executions[0].state === "assigned");
  const evil = `<table><tr><td>a table</td></tr></table>
    <img src=x onerror="parent.postMessage('xss','*'); top.xss=1; document.body.dataset.xss=1">
    <img src="${evilAt}/track.png"><link rel=stylesheet href="${evilAt}/x.css">
    <script>document.body.dataset.xss=1</script><iframe src="${evilAt}/"></iframe>
    <a id=away href="${evilAt}/">away</a><a id=js href="javascript:document.body.dataset.xss=1">js</a>
    <form action="${it.url}/logout" method=post><button id=send>send</button></form>
    <meta http-equiv=refresh content="0;url=${evilAt}/">`;
  await native.say(
    { kind: "execution.started", execution_id: "r" },
    { kind: "output.display", execution_id: "r", bundle: html(evil) },
    { kind: "output.terminal", execution_id: "r", stream: "stdout", text: "<img src=x onerror=window.xss=1>\n" },
    { kind: "output.markdown", execution_id: "r", text: "[x](javascript:window.xss=1) <b>raw</b>" },
    { kind: "output.error", execution_id: "r", name: "<b>E</b>", value: "<script>window.xss=1</script>", traceback: [] },
    { kind: "execution.completed", execution_id: "r", outcome: "ok" },
  );
  const { page } = await open(t, it);
  await show(page, it, book);
  const frame = page.frameLocator(".nb-frame");
  await frame.getByText("a table").waitFor();
  const inside = page.frames().find((one) => one.url().endsWith("/frames/output"));
  for (const id of ["#away", "#js", "#send"]) await frame.locator(id).click();
  const found = await inside.evaluate(async (away) => {
    const refused = (work) => Promise.resolve().then(work).then(() => "let", () => "refused");
    return {
      origin: self.origin,
      ran: document.body.dataset.xss ?? "nothing",
      page: await refused(() => parent.document.title),
      cookie: await refused(() => document.cookie),
      storage: await refused(() => localStorage.length),
      ward: await refused(() => fetch("/sessions")),
      elsewhere: await refused(() => fetch(away)),
      script: (document.body.append(Object.assign(document.createElement("script"), { text: "document.body.dataset.script = 1" })), document.body.dataset.script ?? "nothing"),
    };
  }, evilAt);
  assert.deepEqual(found, { origin: "null", ran: "nothing", page: "refused", cookie: "refused", storage: "refused", ward: "refused", elsewhere: "refused", script: "nothing" });
  assert.equal(await page.evaluate(() => window.xss), undefined);
  assert.deepEqual(reached, []);
  assert.equal(await page.locator(".nb-outputs script, .nb-outputs b, .nb-outputs img").count(), 0);
  assert.equal((await it.call("GET", "/healthz")).body.actor, `person:${book.owner}`, "nobody was signed out");
  // The browser says on the console what it refuses there, and nothing else went wrong.
  for (const said of page.wrong.splice(0)) assert.match(said, /Content Security Policy|sandboxed/);
});

test("only a notebook's document may run what is compiled, and the chat's loads none of it", limit, async (t) => {
  const it = await serve(t);
  const { context, page } = await open(t, it);
  const policy = async (path) => (await context.request.get(it.url + path, { headers: { accept: "text/html" } })).headers()["content-security-policy"];
  assert.doesNotMatch(await policy("/"), /unsafe/);
  assert.match(await policy("/"), /frame-src 'none'/);
  assert.match(await policy("/notebook"), /script-src 'self' 'wasm-unsafe-eval';/);
  assert.match(await policy("/notebook"), /trusted-types 'none'/);
  const refused = await page.evaluate(() => WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => "let", () => "refused"));
  assert.equal(refused, "refused");
  const fetched = await page.evaluate(() => performance.getEntriesByType("resource").map((entry) => entry.name));
  assert.ok(!fetched.some((name) => name.endsWith(".wasm")));
  // What is not a notebook is not shown in its document.
  await page.goto(`${it.url}/notebook#/ledger`);
  await page.waitForURL(`${it.url}/#/ledger`);
  await page.getByRole("heading", { name: "Ledger" }).waitFor();
});

test("who signs out takes along what this browser kept", limit, async (t) => {
  const it = await serve(t);
  const book = await notebook(it, "a secret");
  const { page } = await open(t, it);
  await show(page, it, book);
  await saved(page);
  const kept = () => page.evaluate(async () => (await indexedDB.databases()).map((one) => one.name));
  await page.waitForFunction(async () => (await indexedDB.databases()).length > 0);
  await page.goto(`${it.url}/#/settings`);
  await page.getByRole("button", { name: "Sign this browser out" }).click();
  await page.getByText("ward tokens link", { exact: true }).waitFor();
  assert.deepEqual(await kept(), []);
});
