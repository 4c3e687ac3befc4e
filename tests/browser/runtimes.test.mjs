// Where the actions of a session run: chosen on the page, with what is connected.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { io } from "socket.io-client";
import { begin, closeBrowser, idle, limit, model, open, say, serve, shot } from "./ward.mjs";

after(closeBrowser);

/** An editor that reads files, each with its own words. */
async function editor(t, it, { workspace = it.workspace, name = "orders", words = "as the editor has it" } = {}) {
  const socket = io(it.url, { auth: { token: it.token }, reconnection: false, forceNew: true });
  t.after(() => socket.close());
  await once(socket, "connect");
  const asked = [];
  socket.on("action:execute", (request, acknowledge) => {
    asked.push(request.action);
    acknowledge({ ok: true, result: { content: `${words}\n`, encoding: "utf-8", size: words.length + 1, digest: `sha256:${"0".repeat(64)}`, truncated: false } });
  });
  const { status, body } = await it.call("POST", "/runtimes", { socket_id: socket.id, kind: "vscode", workspace_path: workspace, workspace_name: name, version: "1.99.0", extension_version: "0.1.0", capabilities: ["fs.read"] });
  assert.equal(status, 201, JSON.stringify(body));
  return { socket, asked, id: body.runtime_id };
}

async function scene(t) {
  const scripted = await model(t);
  const it = await serve(t, { env: scripted.env });
  const { page } = await open(t, it);
  const choose = async (name) => {
    await page.getByRole("button", { name: /^runs in/ }).click();
    await page.getByRole("option", { name }).click();
  };
  const read = async (words) => {
    await say(page, "read README.md");
    await page.locator(".said").getByText(words).waitFor();
    await idle(page);
  };
  return { it, page, scripted, choose, read };
}

test("where nothing is chosen, a session runs on this machine", limit, async (t) => {
  const { it, page, read } = await scene(t);
  const window = await editor(t, it);
  await page.getByRole("button", { name: "runs in this machine" }).waitFor();
  await read("With a file in it.");
  assert.deepEqual(window.asked, []);
  assert.equal((await it.call("GET", "/sessions")).body.sessions[0].runtime ?? null, null);
});

test("a connected editor is chosen by its name, and the session acts there", limit, async (t) => {
  const { it, page, choose, read } = await scene(t);
  const other = join(it.home, "invoices");
  await mkdir(other);
  const [one, two] = [await editor(t, it), await editor(t, it, { workspace: other, name: "invoices", words: "from the other window" })];
  await page.getByRole("button", { name: /^runs in/ }).click();
  // What is connected is asked for when the menu opens.
  await page.getByRole("option", { name: /VS Code, invoices/ }).waitFor();
  const names = await page.getByRole("option").locator(".menu-name").allInnerTexts();
  assert.deepEqual(names.map((name) => name.replace(" ✓", "")).sort(), ["VS Code, invoices", "VS Code, orders", "VS Code, this workspace", "this machine"]);
  assert.match(await page.getByRole("option", { name: /VS Code, invoices/ }).innerText(), /Connected · \S+\/invoices\. Nothing confines its commands, so they ask\./);
  await shot(page, "runtime-picker");
  await page.keyboard.press("Escape");
  await choose(/VS Code, invoices/);
  await read("from the other window");
  assert.deepEqual([one.asked, two.asked], [[], ["fs.read"]]);
  const [session] = (await it.call("GET", "/sessions")).body.sessions;
  assert.deepEqual([session.runtime, session.workspace], [two.id, other]);
  await page.locator(".top").getByText("VS Code, invoices").waitFor();
  // An editor has an undo of its own: the card offers none.
  assert.equal(await page.locator(".card").getByRole("button", { name: /^Undo/ }).count(), 0);
  // Asked again, it is asked there again.
  await page.locator(".me-row").hover();
  await page.locator(".me-row").getByRole("button", { name: "retry" }).click();
  await page.waitForURL((url) => !url.href.includes(session.session_id));
  await page.locator(".said").getByText("from the other window").waitFor();
  assert.deepEqual(two.asked, ["fs.read", "fs.read"]);
});

test("a choice that is not connected asks the person to connect, waits, and goes on by itself", limit, async (t) => {
  const { it, page, choose } = await scene(t);
  await choose(/VS Code, this workspace.*None is connected/s);
  await say(page, "read README.md");
  const waits = page.locator(".awaited");
  await waits.getByText("Waiting for an editor to connect").waitFor();
  assert.match(await waits.innerText(), /Ward: Connect This Window/);
  await page.locator(".top").getByText("waits for an editor").waitFor();
  await shot(page, "awaits");
  assert.equal(await page.locator(".card").count(), 0);
  // Also for who comes to it later.
  await page.reload();
  await waits.waitFor();
  const window = await editor(t, it);
  await page.locator(".said").getByText("as the editor has it").waitFor();
  await idle(page);
  await waits.waitFor({ state: "detached" });
  assert.deepEqual(window.asked, ["fs.read"]);
});

test("stop ends the waiting for an editor", limit, async (t) => {
  const { page, choose } = await scene(t);
  await choose(/VS Code, this workspace/);
  await say(page, "read README.md");
  await page.locator(".awaited").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await idle(page);
  await page.locator(".awaited").waitFor({ state: "detached" });
});

test("where several windows show this folder, one has to be chosen by its name", limit, async (t) => {
  const { it, page } = await scene(t);
  await editor(t, it);
  await editor(t, it);
  await page.getByRole("button", { name: /^runs in/ }).click();
  const need = page.getByRole("option", { name: /VS Code, this workspace/ });
  await need.getByText("Several windows show this folder.").waitFor();
  assert.equal(await need.getAttribute("aria-disabled"), "true");
});

test("an editor that leaves in mid-session is waited for, and the place shows it as away", limit, async (t) => {
  const { it, page, scripted } = await scene(t);
  const window = await editor(t, it);
  scripted.turns.push([{ call: "fs_read", with: { path: "README.md" } }], [{ text: "Read." }]);
  const session = await begin(it, page, "Read it.", { runtime: { kind: "vscode" } });
  await page.getByText("Read.", { exact: true }).waitFor();
  await idle(page);
  window.socket.close();
  await page.goto(`${it.url}/#/runtimes`);
  await page.locator(".panel", { hasText: "VS Code" }).getByText("away").waitFor();
  await page.locator(".panel", { hasText: "VS Code" }).getByText("not confined").waitFor();
  await page.goto(`${it.url}/#/session/${session}`);
  await say(page, "Again.");
  await page.locator(".awaited").waitFor();
});
