// Around the conversation: sessions, roles, modes, the record, the workspace's files.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { begin, closeBrowser, idle, limit, model, open, question, say, serve, shot } from "./ward.mjs";

after(closeBrowser);

const BACKEND = "---\nname: backend\ndescription: Writes the server.\nskills: [fs.read, \"fs.write(src/**)\", \"terminal.run(cargo *)\"]\n---\nYou write code.\n";

test("sessions are listed, found, renamed, resumed and deleted", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  for (const text of ["list the files", "read README.md", "find *.md", "run echo four"]) {
    await page.goto(`${it.url}/#/`);
    await page.getByRole("heading", { name: "What shall be done?" }).waitFor();
    await say(page, text);
    await idle(page);
  }
  const nav = page.getByRole("navigation");
  await nav.getByLabel("Search sessions").fill("readme");
  await nav.getByRole("link", { name: /read README\.md/ }).waitFor();
  assert.equal(await nav.locator(".s-row").count(), 1);
  await nav.getByRole("button", { name: "Rename read README.md" }).click();
  await nav.getByLabel("New name").fill("The first look");
  await nav.getByLabel("New name").press("Enter");
  await nav.getByLabel("Search sessions").fill("first");
  const link = nav.getByRole("link", { name: /The first look/ });
  await link.click();
  await page.locator(".said").getByText("With a file in it.").waitFor();
  await say(page, "list the files");
  await idle(page);
  assert.equal(await page.locator(".me").count(), 2);
  await nav.getByRole("button", { name: "Delete The first look" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "What shall be done?" }).waitFor();
  await nav.getByText("No session has").waitFor();
  assert.equal((await it.call("GET", "/sessions")).body.sessions.length, 3);
});

test("a role is chosen by what it may do, and the next session has it", limit, async (t) => {
  const it = await serve(t, { roles: { backend: BACKEND } });
  const { page } = await open(t, it);
  await page.getByRole("button", { name: /^role/ }).click();
  const option = page.getByRole("option", { name: /backend/ });
  assert.match(await option.innerText(), /Writes the server\. May read files, write files in src\/\*\*, run commands like cargo \*/);
  await shot(page, "roles-picker");
  await option.click();
  await say(page, "list the files");
  await idle(page);
  const [session] = (await it.call("GET", "/sessions")).body.sessions;
  assert.equal(session.role, "backend");
});

test("full mode warns first, holds for the session, and is not remembered", limit, async (t) => {
  const scripted = await model(t);
  const it = await serve(t, { env: scripted.env, roles: { free: "---\nname: free\nmode: full\nskills: [fs.read, terminal.run]\n---\nx\n" } });
  const { page } = await open(t, it);
  await page.getByRole("button", { name: /^role/ }).click();
  await page.getByRole("option", { name: /free/ }).click();
  await page.getByRole("button", { name: /^mode / }).click();
  await page.getByRole("option", { name: /Full/ }).click();
  const warning = page.getByRole("dialog");
  await warning.getByText("nothing holds a command that is allowed").waitFor();
  await warning.getByRole("button", { name: "Stay in the sandbox" }).click();
  await page.getByRole("button", { name: /mode Sandbox/ }).click();
  await page.getByRole("option", { name: /Full/ }).click();
  await warning.getByRole("button", { name: "Use full mode" }).click();
  await page.getByRole("button", { name: /mode Full/ }).waitFor();
  await say(page, "list the files");
  await idle(page);
  assert.equal((await it.call("GET", "/sessions")).body.sessions[0].mode, "full");
  await page.goto(`${it.url}/#/`);
  await page.getByRole("button", { name: /mode Sandbox/ }).waitFor();
});

test("role, model and mode of a session that goes on can be changed", limit, async (t) => {
  const scripted = await model(t);
  const it = await serve(t, { env: scripted.env, roles: { backend: BACKEND } });
  const { page } = await open(t, it);
  await say(page, "list the files");
  await idle(page);
  await page.getByRole("button", { name: /^model/ }).click();
  await page.getByLabel("provider/model").fill("chat/scripted");
  await page.getByLabel("provider/model").press("Enter");
  await page.getByText("From here on: model chat/scripted.").waitFor();
  scripted.turns.push([{ text: "Another voice." }]);
  await say(page, "Who are you?");
  await page.getByText("Another voice.").waitFor();
  await idle(page);
  const { usage } = (await it.call("GET", "/sessions")).body.sessions[0];
  assert.ok(usage.input >= 120 && usage.output >= 30);
  await page.getByRole("region", { name: "Usage" }).getByText(String(usage.input + usage.output), { exact: true }).waitFor();
});

test("what a session used and cost is told while it goes on", limit, async (t) => {
  const scripted = await model(t);
  // 120 read and 30 written a turn: 0.012 and 0.009 dollars.
  const it = await serve(t, { env: scripted.env, settings: '[models."scripted"]\ninput = 100.0\noutput = 300.0\n' });
  scripted.turns.push([{ text: "One." }], [{ text: "Two." }]);
  const { page } = await open(t, it);
  await begin(it, page, "Count.");
  await page.getByText("One.", { exact: true }).waitFor();
  await idle(page);
  const usage = page.getByRole("region", { name: "Usage" });
  const shown = async () => (await usage.locator(".row").allInnerTexts()).map((row) => row.replace(/\s+/g, " ").trim());
  assert.deepEqual(await shown(), ["Turns 1", "Tokens 150", "in · cached · out 120 · 0 · 30", "Cost $0.021"]);
  await page.locator(".hint").getByText("150 tokens · $0.021").waitFor();
  await say(page, "Go on.");
  await page.getByText("Two.", { exact: true }).waitFor();
  await idle(page);
  assert.deepEqual(await shown(), ["Turns 2", "Tokens 300", "in · cached · out 240 · 0 · 60", "Cost $0.042"]);
});

test("a chain that is not intact is told, with what is wrong where", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  await say(page, "list the files");
  await idle(page);
  // Somebody who has the files changes what was asked for, past Ward.
  const seq = await change(it, "fs.list", "fs.read");
  await page.goto(`${it.url}/#/ledger`);
  await page.locator('[data-chain="broken"]', { hasText: "Broken: 1 problem" }).waitFor();
  await page.getByText(`Entry ${seq} was changed: its hash does not fit what it says.`, { exact: true }).waitFor();
  assert.equal(await change(it, "fs.read", "fs.list"), seq);
  await page.getByRole("button", { name: "Verify again" }).click();
  await page.locator('[data-chain="intact"]').waitFor();
});

/** Writes another word into a request's entry, as soon as it is in the database, and tells its number. */
const change = async (it, from, to) => {
  const { stdout } = await promisify(execFile)("python3", ["-c", CHANGE, join(it.home, ".local/share/ward/ward.db"), from, to]);
  return Number(stdout);
};

const CHANGE = `
import sqlite3, sys, time
path, before, after = sys.argv[1:]
database = sqlite3.connect(path, timeout=10)
for _ in range(200):
    with database:
        changed = database.execute(
            "UPDATE events SET data = replace(data, ?, ?) WHERE stream = 'ledger' AND kind = 'request' AND instr(data, ?) RETURNING seq",
            (before, after, before),
        ).fetchall()
    if changed:
        print(*changed[0])
        sys.exit()
    time.sleep(0.05)
sys.exit("no such entry is in the database")
`;

test("the ledger shows what happened, can be filtered, and says that its chain is intact", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  await say(page, "run echo a-word-to-find");
  await idle(page);
  await page.goto(`${it.url}/#/ledger`);
  await page.locator('[data-chain="intact"]').waitFor();
  const rows = page.locator(".ledger tbody tr");
  await rows.filter({ hasText: "terminal.run echo a-word-to-find" }).waitFor();
  await page.getByLabel("Kind").selectOption("outcome");
  await rows.filter({ hasText: "exit 0" }).waitFor();
  assert.equal(await rows.count(), 1);
  await page.getByLabel("Filter the ledger").fill("no such thing");
  await page.getByText("Nothing fits.").waitFor();
  await page.getByLabel("Filter the ledger").fill("");
  // What happens meanwhile comes by itself.
  await it.call("POST", "/actions", { action: "fs.list", params: { path: "." } });
  await rows.nth(1).waitFor();
  // What was done is told by what was asked for.
  await rows.first().getByText("fs.list .").waitFor();
});

test("the workspace's files can be looked at", limit, async (t) => {
  const it = await serve(t, { files: { "src/main.rs": "fn main() {}\n", "README.md": "# Read me\n" } });
  const { page } = await open(t, it);
  const side = page.getByRole("complementary");
  await side.getByRole("button", { name: "Files", exact: true }).click();
  await side.getByRole("button", { name: "src/" }).click();
  await side.getByRole("button", { name: "main.rs" }).click();
  const dialog = page.getByRole("dialog", { name: "src/main.rs" });
  await dialog.locator(".cm-line .tok-keyword", { hasText: "fn" }).waitFor();
  // The editor's own style sheet is let in.
  assert.equal(await dialog.locator(".cm-scroller").evaluate((element) => getComputedStyle(element).display), "flex");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

test("code is shown without colours where those cannot be fetched", limit, async (t) => {
  const it = await serve(t, { files: { "plain.txt": "plain\n", "main.rs": "fn main() {}\n" } });
  const { page } = await open(t, it);
  const side = page.getByRole("complementary");
  await side.getByRole("button", { name: "Files", exact: true }).click();
  await side.getByRole("button", { name: "plain.txt" }).click();
  await page.getByRole("dialog", { name: "plain.txt" }).locator(".cm-line").first().waitFor();
  await page.keyboard.press("Escape");
  await page.route(/\/assets\//, (route) => route.abort());
  const missed = page.waitForEvent("requestfailed");
  await side.getByRole("button", { name: "main.rs" }).click();
  await page.getByRole("dialog", { name: "main.rs" }).locator(".cm-line", { hasText: "fn main" }).waitFor();
  // That nothing else went wrong on the page is looked at when it ends.
  await missed;
});

test("runtimes, roles and settings say what is there", limit, async (t) => {
  const it = await serve(t, { roles: { backend: BACKEND } });
  const { page } = await open(t, it);
  await page.goto(`${it.url}/#/runtimes`);
  await page.getByRole("heading", { name: /This machine: tier/ }).waitFor();
  await page.locator(".layers li").first().waitFor();
  await page.goto(`${it.url}/#/roles`);
  await page.getByText("may write files in src/**").waitFor();
  await page.goto(`${it.url}/#/settings`);
  await page.getByText("ANTHROPIC_API_KEY").first().waitFor();
  // It holds at once, and does not jump back for a frame.
  assert.equal(await page.getByRole("radio", { name: "dark" }).evaluate((radio) => (radio.click(), radio.checked)), true);
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
  await page.reload();
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
});

test("a notification comes for a question when the page is in the background, if that is wanted", limit, async (t) => {
  const it = await serve(t);
  const { context, page } = await open(t, it);
  await context.grantPermissions(["notifications"], { origin: it.url });
  await page.addInitScript(() => {
    window.notified = [];
    window.Notification = class {
      static permission = "granted";
      static requestPermission = async () => "granted";
      constructor(title, options) {
        window.notified.push({ title, ...options });
        (window.notifications ??= []).push(this);
      }
      close() {}
    };
    Object.defineProperty(document, "hidden", { get: () => window.away === true });
  });
  await page.goto(`${it.url}/#/settings`);
  await page.reload();
  // The browser is asked first.
  await page.getByLabel(/Notify me in the browser/).click();
  await page.locator("input[type=checkbox]:checked").waitFor();
  await page.evaluate(() => {
    window.away = true;
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await writeFile(join(it.home, "letter.txt"), "x");
  await it.call("POST", "/sessions", { input: `read ${it.home}/letter.txt`, model: "offline", wait: 0 });
  await page.waitForFunction(() => window.notified.length > 0);
  const [notified] = await page.evaluate(() => window.notified);
  assert.match(notified.title, /system_agent wants to read a file/);
  assert.ok(notified.body.includes("letter.txt"));
  // It leads to its question.
  await page.evaluate(() => {
    window.away = false;
    document.dispatchEvent(new Event("visibilitychange"));
    window.notifications[0].onclick();
  });
  await question(page).getByText("letter.txt").first().waitFor();
  assert.match(page.url(), /#\/session\//);
});

test("a session that is not there is told in words", limit, async (t) => {
  const it = await serve(t);
  const { page } = await open(t, it);
  await page.goto(`${it.url}/#/session/nothing-of-the-kind`);
  await page.getByText("This session cannot be shown.").waitFor();
  await page.getByRole("link", { name: "Begin a new one" }).click();
  await page.getByRole("heading", { name: "What shall be done?" }).waitFor();
});
