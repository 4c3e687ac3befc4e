// A window that finds no Ward starts one, and ends what it started.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
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

/** Where the Ward is that this window started. */
async function startedBy(window) {
  await window.command("Ward: Show Status");
  const row = window.page.locator(".quick-input-list .monaco-list-row", { hasText: "started by this window" });
  await row.waitFor();
  await window.shot("status");
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(await row.innerText());
  await window.page.keyboard.press("Escape");
  return url;
}

/** The process that started the Ward of this folder. */
async function parentOf(work) {
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
    if (words[1] !== "serve" || !words.includes(work)) continue;
    const parent = /^PPid:\s*(\d+)$/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))[1];
    return Number(parent);
  }
  assert.fail("no Ward serves this folder");
}

async function ended(url) {
  for (let tries = 0; await isThere(url); tries++) {
    assert.ok(tries < 200, "it still runs");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

const isThere = (url) => fetch(`${url}/healthz`).then(({ ok }) => ok, () => false);

test("a window starts Ward where none runs, a second window uses it, and it ends when it is closed", limit, async (t) => {
  if (await isThere("http://127.0.0.1:3000")) return t.skip("a Ward runs at the usual address");
  const one = await open(t, bench, await folder(join(at, "one")));
  await one.connect();
  const url = await startedBy(one);
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
  await ended(url);
});

test("windows that open at the same moment where no Ward runs are all connected, to one that one of them started", limit, async (t) => {
  if (await isThere("http://127.0.0.1:3000")) return t.skip("a Ward runs at the usual address");
  await bench.set({ "ward.connectOnStartup": true });
  t.after(() => bench.set({ "ward.connectOnStartup": false }));
  const windows = await Promise.all(["six", "seven", "eight"].map(async (name) => open(t, bench, await folder(join(at, name)))));
  const urls = new Set();
  for (const window of windows) {
    await window.status(/Ward: connected/).waitFor();
    await window.command("Ward: Show Status");
    const row = window.page.locator(".quick-input-list .monaco-list-row", { hasText: "http://127.0.0.1:" });
    urls.add(/http:\/\/127\.0\.0\.1:\d+/.exec(await row.innerText())[0]);
    await window.page.keyboard.press("Escape");
  }
  assert.equal(urls.size, 1);
  for (const { page } of windows) await page.close({ runBeforeUnload: true });
  await ended([...urls][0]);
});

test("a Ward that runs on another port is found by the data folder that it owns", limit, async (t) => {
  const ward = await serve(at);
  t.after(() => ward.kill());
  const work = await folder(join(at, "found"));
  const window = await open(t, bench, work);
  await window.connect();
  assert.equal((await ward.runtime(work)).workspace, work);
});

test("a Ward that the person restarts has its data folder: the window waits for it, starts one where asked to, and ends that as it disconnects", limit, async (t) => {
  if (await isThere("http://127.0.0.1:3000")) return t.skip("a Ward runs at the usual address");
  const ward = await serve(at);
  t.after(() => ward.kill());
  const work = await folder(join(at, "restarted"));
  const window = await open(t, bench, work);
  await window.connect();
  const { runtime_id } = await ward.runtime(work);
  await ward.kill();
  await window.status(/Ward: reconnecting/).waitFor();
  // It has looked, and found none.
  const waits = window.page.locator('.statusbar-item [aria-label*="No Ward runs"]');
  await waits.waitFor();
  await window.shot("waits");
  await ward.start();
  await window.status(/Ward: connected/).waitFor();
  assert.equal((await ward.runtime(work)).runtime_id, runtime_id);
  await ward.kill();
  await waits.waitFor();
  await window.connect();
  const url = await startedBy(window);
  await window.command("Ward: Disconnect");
  await window.status(/Ward: off/).waitFor();
  await ended(url);
  await window.connect();
  const second = await startedBy(window);
  const other = await open(t, bench, await folder(join(at, "beside")));
  await other.connect();
  await window.command("Ward: Disconnect");
  await window.status(/Ward: off/).waitFor();
  await other.command("Ward: Show Status");
  await other.page.locator(".quick-input-list .monaco-list-row", { hasText: second }).waitFor();
  await other.page.keyboard.press("Escape");
  await other.command("Ward: Disconnect");
  await other.status(/Ward: off/).waitFor();
  assert.ok(await isThere(second), "the other window was at it");
  await window.page.close({ runBeforeUnload: true });
  await ended(second);
  await ward.start();
});

test("the Ward that a window started ends also where the window's extensions are killed", limit, async (t) => {
  if (await isThere("http://127.0.0.1:3000")) return t.skip("a Ward runs at the usual address");
  const work = await folder(join(at, "killed"));
  const window = await open(t, bench, work);
  await window.connect();
  const url = await startedBy(window);
  assert.ok(await isThere(url));
  process.kill(await parentOf(work), "SIGKILL");
  await ended(url);
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

/** The answer to a wrong token: too many of them are refused otherwise. */
async function guess({ url }) {
  return (await fetch(`${url}/grants`, { headers: { authorization: "Bearer ward_person_guess" } })).status;
}

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
  // What is being written is not tried: each wrong one counts as a guess.
  await input.pressSequentially("ward_person_wrong");
  await input.press("Enter");
  await window.page.getByText("Ward does not take this token").waitFor();
  assert.equal(await window.page.locator(".statusbar-item", { hasText: "Ward: connecting" }).count(), 1, "it says so once");
  for (let count = 0; count < 8; count++) assert.equal(await guess(ward), 401);
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

test("another user who listens where a Ward was is sent no token, and the person is told who it is", limit, async (t) => {
  if (process.getuid() !== 0) return t.skip("only root can be somebody else");
  // Answers as Ward does, and prints what it is sent.
  const program = `
    const server = require("node:http").createServer((asked, answer) => {
      console.log(JSON.stringify(asked.headers));
      answer.end(JSON.stringify({ status: "ok", version: "0", actor: "person:me" }));
    }).listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));`;
  const thief = spawn("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", process.execPath, "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => thief.kill());
  const lines = createInterface({ input: thief.stdout });
  const heard = [];
  lines.on("line", (line) => heard.push(JSON.parse(line)));
  await once(lines, "line");
  await bench.set({ "ward.connectOnStartup": false, "ward.url": `http://127.0.0.1:${heard[0].port}` });
  const window = await open(t, bench, await folder(join(at, "five")));
  await window.command("Ward: Connect This Window");
  await window.page.getByText("Another user of this machine (uid 65534) answers there").waitFor();
  await window.shot("stranger");
  assert.ok(heard.length > 1, "it was asked whether it is there");
  assert.ok(heard.every(({ authorization }) => authorization === undefined), JSON.stringify(heard));
});
