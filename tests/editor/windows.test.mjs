// Several windows, windows that close, a Ward that goes and comes back, and what is asked while the chat is
// hidden.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder, limit, open, stage } from "./workbench.mjs";

let at, ward, bench, end;
before(async () => ({ at, ward, bench, end } = await stage()), limit);
after(() => end());

test("two windows on two folders: each action is done in the right one", limit, async (t) => {
  const [one, two] = [await folder(join(at, "one"), { "a.txt": "in one\n" }), await folder(join(at, "two"), { "a.txt": "in two\n" })];
  const windows = [await open(t, bench, one), await open(t, bench, two)];
  assert.deepEqual((await ward.call("GET", "/runtimes?kind=vscode")).body.runtimes, [], "nothing connects unasked");
  for (const window of windows) await window.connect();
  const runtimes = [await ward.runtime(one), await ward.runtime(two)];
  assert.notEqual(runtimes[0].runtime_id, runtimes[1].runtime_id);
  for (const [index, work] of [one, two].entries()) {
    // By what it has to be, and by its id.
    for (const runtime of [{ kind: "vscode" }, runtimes[index].runtime_id]) {
      const done = await ward.call("POST", "/actions", { action: "fs.read", params: { path: "a.txt" }, workspace: work, runtime });
      assert.equal(done.body.outcome?.result?.content, `in ${["one", "two"][index]}\n`, JSON.stringify(done.body));
    }
    await ward.act(runtimes[index].runtime_id, "fs.write", { path: "b.txt", content: `for ${index}\n` });
    await windows[index].page.locator(".tab", { hasText: "b.txt" }).waitFor();
    assert.equal(await readFile(join(work, "b.txt"), "utf8"), `for ${index}\n`);
  }
  await windows[0].command("Ward: Disconnect");
  await windows[0].status(/Ward: off/).waitFor();
  assert.deepEqual((await ward.call("GET", "/runtimes?kind=vscode")).body.runtimes.map(({ workspace }) => workspace), [two]);
});

test("websockets that say nothing keep no window out", limit, async (t) => {
  const work = await folder(join(at, "silent"), {});
  const window = await open(t, bench, work);
  const { hostname, port } = new URL(ward.url);
  const silent = Array.from({ length: 40 }, () => {
    const socket = createConnection(Number(port), hostname).on("error", () => {});
    socket.write(["GET /socket.io/?EIO=4&transport=websocket HTTP/1.1", `host: ${hostname}:${port}`, "connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", "", ""].join("\r\n"));
    return socket;
  });
  t.after(() => silent.forEach((socket) => socket.destroy()));
  await Promise.race(silent.map((socket) => once(socket, "data")));
  await window.connect();
  await ward.runtime(work);
});

test("a window with several folders is a runtime for each", limit, async (t) => {
  const [left, right] = [await folder(join(at, "left"), { "a.txt": "left\n" }), await folder(join(at, "right"), { "a.txt": "right\n" })];
  const both = join(at, "both.code-workspace");
  await writeFile(both, JSON.stringify({ folders: [{ path: left }, { path: right }] }));
  const window = await open(t, bench, both);
  await window.connect();
  const read = async (runtime, path) => (await ward.act(runtime.runtime_id, "fs.read", { path })).result?.content;
  const [first, second] = [await ward.runtime(left), await ward.runtime(right)];
  assert.deepEqual([await read(first, "a.txt"), await read(second, "a.txt")], ["left\n", "right\n"]);
});

test("what is found in one folder of a window is in that folder, whatever a link in it leads to", limit, async (t) => {
  const found = await folder(join(at, "found"), { "a.txt": "word in found\n", "below/b.txt": "word below\n" });
  const beside = await folder(join(at, "beside"), { "c.txt": "word beside\n" });
  await symlink(beside, join(found, "link"));
  await symlink(join(found, "a.txt"), join(found, "below/up.txt"));
  const both = join(at, "linked.code-workspace");
  await writeFile(both, JSON.stringify({ folders: [{ path: found }, { path: beside }] }));
  const window = await open(t, bench, both);
  await window.connect();
  const { runtime_id } = await ward.runtime(found);
  const paths = async (action, params) => {
    const { result } = await ward.act(runtime_id, action, params);
    return (result.entries ?? result.matches).map(({ path }) => path).sort();
  };
  for (const [path, ...inside] of [[".", "a.txt", "below/b.txt"], ["below", "below/b.txt"]]) {
    for (const pattern of ["**", "../**"]) {
      for (const list of [await paths("fs.glob", { path, pattern }), await paths("fs.search", { path, pattern: "word", glob: pattern })]) {
        assert.deepEqual(list.filter((one) => one !== "below/up.txt"), pattern === "**" ? inside : [], `${path} ${pattern}`);
        assert.ok(path === "." || list.every((one) => one.startsWith("below/b")), list.join(" "));
      }
    }
  }
});

test("a virtual workspace says what it cannot do, and beside a folder on the disk that one connects", limit, async (t) => {
  const runtimes = async () => (await ward.call("GET", "/runtimes?kind=vscode")).body.runtimes;
  const virtual = join(at, "virtual.code-workspace");
  await writeFile(virtual, JSON.stringify({ folders: [{ uri: "memfs:/elsewhere", name: "elsewhere" }] }));
  const window = await open(t, bench, virtual);
  await window.command("Ward: Connect This Window");
  await window.page.locator(".notification-toast", { hasText: "virtual workspace (memfs:)" }).waitFor();
  assert.ok(!(await runtimes()).some((one) => one.workspace.includes("elsewhere")));
  const work = await folder(join(at, "real"), { "a.txt": "here\n" });
  const other = await folder(join(at, "other"), { "a.txt": "there\n" });
  const mixed = join(at, "mixed.code-workspace");
  await writeFile(mixed, JSON.stringify({ folders: [{ path: work }, { uri: "memfs:/elsewhere", name: "elsewhere" }, { path: other }] }));
  const second = await open(t, bench, mixed);
  await second.connect();
  const both = [await ward.runtime(work), await ward.runtime(other)];
  assert.ok(!(await runtimes()).some((one) => one.workspace.includes("elsewhere")));
  await second.command("Ward: Show Status");
  await second.page.locator(".quick-input-list .monaco-list-row", { hasText: "memfs: is no folder on a disk" }).waitFor();
  await second.page.keyboard.press("Escape");
  // Each folder's actions are done in it; the window's other folders count as inside to the editor, and
  // as outside to the gate, which asks.
  for (const [index, content] of ["here\n", "there\n"].entries()) {
    assert.equal((await ward.act(both[index].runtime_id, "fs.read", { path: "a.txt" })).result?.content, content);
  }
  const id = await ward.asked(both[0].runtime_id, "fs.write", { path: join(other, "b.txt"), content: "over\n" });
  assert.equal((await ward.outcome(id)).status, "done");
  assert.equal(await readFile(join(other, "b.txt"), "utf8"), "over\n");
});

test("a window that closes in mid-action leaves it lost, and its runtime away", limit, async (t) => {
  const work = await folder(join(at, "closing"), {});
  const window = await open(t, bench, work);
  await window.connect();
  const { runtime_id } = await ward.runtime(work);
  const id = await ward.asked(runtime_id, "terminal.run", { command: "sleep 300" });
  await ward.until(`/actions/${id}`, ({ state }) => state === "running");
  await window.page.locator(".xterm-rows", { hasText: "sleep 300" }).first().waitFor();
  // As when a window is closed: the workbench ends its extensions.
  await window.page.close({ runBeforeUnload: true });
  const outcome = await ward.outcome(id);
  assert.equal(outcome.kind, "runtime_lost", JSON.stringify(outcome));
  const { body } = await ward.call("GET", "/runtimes?kind=vscode");
  assert.ok(!body.runtimes.some((one) => one.runtime_id === runtime_id && one.state === "ready"));
  const late = await ward.act(runtime_id, "fs.read", { path: "x" });
  assert.match(late.kind, /^(no_runtime|runtime_away)$/);
});

test("Ward is killed and comes back: the window says so, connects by itself and keeps its id", limit, async (t) => {
  const work = await folder(join(at, "restart"), { "a.txt": "still here\n" });
  const window = await open(t, bench, work);
  await window.command("Ward: Open Chat");
  const chat = await window.chat("textarea");
  const { runtime_id } = await ward.runtime(work);
  await ward.kill();
  await window.status(/Ward: reconnecting/).waitFor();
  await window.shot("reconnecting");
  await ward.start();
  await window.status(/Ward: connected/).waitFor();
  const back = await ward.runtime(work);
  assert.equal(back.runtime_id, runtime_id);
  assert.equal((await ward.act(runtime_id, "fs.read", { path: "a.txt" })).result.content, "still here\n");
  // The page goes on too.
  await chat.getByRole("textbox", { name: "Message" }).fill("read a.txt");
  await chat.getByRole("textbox", { name: "Message" }).press("Enter");
  await chat.locator(".said").getByText("still here").first().waitFor();
});

test("while the chat is hidden a question is a notification with the same choices", limit, async (t) => {
  const work = await folder(join(at, "asking"), {});
  const window = await open(t, bench, work);
  await window.connect();
  const { runtime_id } = await ward.runtime(work);
  const post = (id, command) => ward.call("POST", "/actions", { id, action: "terminal.run", params: { command }, runtime: runtime_id, workspace: work, session: "s", wait: 0 });
  const toast = (text) => window.page.locator(".notification-toast", { hasText: text });
  await post("first", "echo first");
  await toast("echo first").waitFor();
  await window.status(/Ward: 1 waiting/).waitFor();
  await window.shot("notification");
  const buttons = await toast("echo first").locator(".monaco-button:not(.monaco-dropdown-button)").allInnerTexts();
  for (const name of ["Allow once", "This session", "Always here", "Deny"]) assert.ok(buttons.some((text) => text.trim() === name), `${name} in ${buttons}`);
  await toast("echo first").getByRole("button", { name: "Deny" }).click();
  assert.equal((await ward.outcome("first")).kind, "denied");
  await post("second", "echo second");
  await toast("echo second").getByRole("button", { name: "This session" }).click();
  // What that covers is seen before it is given. Who thinks better of it is asked again.
  const covered = window.page.locator(".quick-input-widget input").first();
  await covered.waitFor();
  assert.equal(await covered.inputValue(), "terminal.run(echo second)");
  await covered.press("Escape");
  await toast("echo second").getByRole("button", { name: "This session" }).click();
  await covered.waitFor();
  await window.shot("covered");
  await covered.press("Enter");
  assert.equal((await ward.outcome("second")).result.stdout, "second\n");
  // The answer holds for the session.
  await post("third", "echo second");
  assert.equal((await ward.outcome("third")).result.stdout, "second\n");
  // What is too long to be seen whole gets no yes here.
  await post("long", `echo long ${"x".repeat(300)}; echo end`);
  await toast("echo long").waitFor();
  const few = (await toast("echo long").locator(".monaco-button:not(.monaco-dropdown-button)").allInnerTexts()).map((text) => text.trim());
  assert.deepEqual(few.filter(Boolean), ["Deny", "Show"]);
  await toast("echo long").getByRole("button", { name: "Deny" }).click();
  assert.equal((await ward.outcome("long")).kind, "denied");
  // A page that was hidden and is shown again goes where it is sent, too.
  await window.command("Ward: Open Chat");
  await window.chat("textarea");
  await window.page.locator('.activitybar .action-label[aria-label^="Explorer"]').first().click();
  await window.page.locator(".webview.ready").waitFor({ state: "hidden" });
  await window.command("Ward: Show Approvals");
  await (await window.chat("#root")).getByText("Nothing waits for you.").waitFor();
});

test("a folder that is open by the name of a link is the same folder: unsaved work counts, and questions come", limit, async (t) => {
  const work = await folder(join(at, "behind"), { "a.txt": "one\n", "below/b.txt": "two\n" });
  await symlink(work, join(at, "link"));
  const window = await open(t, bench, join(at, "link"));
  const { page } = window;
  await window.connect();
  const { runtime_id } = await ward.runtime(work);
  await ward.act(runtime_id, "editor.open", { path: "a.txt" });
  await page.locator(".view-line", { hasText: "one" }).click();
  await page.keyboard.press("Home");
  await page.keyboard.type("my ");
  await page.locator(".tab.dirty", { hasText: "a.txt" }).waitFor();
  const content = async () => (await ward.act(runtime_id, "fs.read", { path: "a.txt" })).result?.content;
  for (let tries = 0; (await content()) !== "my one\n"; tries++) assert.ok(tries < 100, await content());
  const edited = await ward.act(runtime_id, "fs.edit", { path: "a.txt", edits: [{ old: "one", new: "1" }] });
  assert.equal(edited.status, "done", JSON.stringify(edited));
  await page.locator(".view-line", { hasText: "my 1" }).waitFor();
  assert.equal(await page.locator(".tab", { hasText: "a.txt" }).count(), 1, "one file has one buffer");
  assert.deepEqual((await ward.act(runtime_id, "fs.search", { pattern: "my" })).result?.matches.map(({ path }) => path), ["a.txt"]);
  assert.deepEqual((await ward.act(runtime_id, "fs.list", { path: "below" })).result?.entries.map(({ path }) => path), ["below/b.txt"]);
  await ward.call("POST", "/actions", { id: "linked", action: "terminal.run", params: { command: "echo linked", env: { GREETING: "a b" } }, runtime: runtime_id, workspace: work, wait: 0 });
  const toast = page.locator(".notification-toast", { hasText: "GREETING='a b' echo linked" });
  await toast.getByRole("button", { name: "Deny" }).click();
  assert.equal((await ward.outcome("linked")).kind, "denied");
});

test("a selection becomes a conversation about it", limit, async (t) => {
  const work = await folder(join(at, "selected"), { "a.txt": "one\ntwo\nthree\n" });
  const window = await open(t, bench, work);
  await window.connect();
  const { runtime_id } = await ward.runtime(work);
  await ward.act(runtime_id, "editor.open", { path: "a.txt", selection: { start: { line: 2 }, end: { line: 2, column: 4 } } });
  await window.page.locator(".tab.active", { hasText: "a.txt" }).waitFor();
  await window.command("Ward: Run Selection with Agent");
  const input = window.page.locator(".quick-input-widget input").first();
  await window.page.getByText("What shall the agent do").waitFor();
  await input.fill("explain it");
  await input.press("Enter");
  const chat = await window.chat(".me-row");
  const said = await chat.locator(".me-row").first().innerText();
  for (const part of ["explain it", "a.txt", "line 2", "two"]) assert.ok(said.includes(part), said);
  await window.shot("selection");
});

test("the status bar says where a conversation that is begun here acts, and the person chooses it there", limit, async (t) => {
  const work = await folder(join(at, "chosen"), { "a.txt": "one\n" });
  const window = await open(t, bench, work);
  await window.connect();
  const { runtime_id } = await ward.runtime(work);
  /** Begins a conversation about the selection; where it acts is answered. */
  const begun = async () => {
    const before = (await ward.call("GET", "/sessions")).body.sessions.length;
    await ward.act(runtime_id, "editor.open", { path: "a.txt", selection: { start: { line: 1 }, end: { line: 1, column: 4 } } });
    await window.command("Ward: Run Selection with Agent");
    await window.page.getByText("What shall the agent do").waitFor();
    const input = window.page.locator(".quick-input-widget input").first();
    await input.fill("explain it");
    await input.press("Enter");
    const { sessions } = await ward.until("/sessions", ({ sessions }) => sessions.length > before);
    assert.equal(sessions[0].workspace, work);
    return sessions[0].runtime;
  };
  const choose = async (item) => {
    await window.status(/this window|local runtime|a window on/).click();
    await window.page.locator(".quick-input-list .monaco-list-row", { hasText: item }).first().click();
  };
  await window.status("this window").waitFor();
  assert.equal(await begun(), runtime_id);
  await choose("The local runtime");
  await window.status("the local runtime").waitFor();
  assert.ok([undefined, "local"].includes(await begun()));
  await choose("Whichever window shows chosen");
  await window.status("a window on chosen").waitFor();
  assert.deepEqual(await begun(), { kind: "vscode", workspace: work });
  await choose("This window");
  await window.status("this window").waitFor();
});

// Last: after windows were reloaded, this workbench opens no workspace file with its folders any more.
test("a window that is reloaded, or disconnected and connected, keeps its id, and its conversation goes on; several on one folder have one each", limit, async (t) => {
  const work = await folder(join(at, "again"), { "a.txt": "again\n" });
  const ready = async (count) => {
    const here = (runtimes) => runtimes.filter((one) => one.workspace === work && one.state === "ready").map((one) => one.runtime_id);
    return here((await ward.until("/runtimes?kind=vscode", ({ runtimes }) => here(runtimes).length === count)).runtimes);
  };
  const window = await open(t, bench, work);
  await window.connect();
  const [first] = await ready(1);
  const { session_id } = (await ward.call("POST", "/sessions", { input: "read a.txt", model: "offline", runtime: first, workspace: work })).body;
  await window.command("Ward: Disconnect");
  await window.status(/Ward: off/).waitFor();
  await window.connect();
  assert.deepEqual(await ready(1), [first]);
  // In the same browser: the windows share what the editor keeps for the folder.
  const other = await open(t, bench, work, window.context);
  await other.connect();
  const both = await ready(2);
  assert.ok(both.includes(first));
  for (const one of [window, other]) {
    await one.page.reload();
    await one.status(/Ward: off/).waitFor();
  }
  await ready(0);
  for (const one of [window, other]) await one.connect();
  assert.deepEqual((await ready(2)).sort(), both.sort());
  const { status, body } = await ward.call("POST", `/sessions/${session_id}/messages`, { input: "read a.txt" });
  assert.equal(status, 200, JSON.stringify(body));
  assert.match(body.output, /again/);
});
