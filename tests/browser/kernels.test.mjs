// A runtime that Ward starts for a notebook, from its page.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { closeBrowser, limit, open, serve, shot } from "./ward.mjs";

after(closeBrowser);

const ui = resolve(import.meta.dirname ?? ".", "../../ui");

test("a kernel is started from the page, runs a cell and is stopped", limit, async (t) => {
  const it = await serve(t);
  const { body: book } = await it.call("POST", "/notebooks", { title: "Sums" });
  const events = [{ kind: "cell.created", cell_id: "a", cell_type: "code", place: "F", source: "1 + 1" }];
  assert.equal((await it.call("POST", `/notebooks/${book.id}/events`, { events })).status, 200);
  const { page } = await open(t, it);
  await page.goto(`${it.url}/notebook#/notebook/${book.id}`);
  await page.getByRole("button", { name: /^kernel/ }).click();
  await page.getByRole("option", { name: /^Echo/ }).click();
  const stop = page.getByRole("button", { name: "Stop echo" });
  await stop.waitFor();
  await page.locator('[data-runtime^="ward-"][data-state="ready"]').waitFor();
  await page.getByRole("button", { name: "Run all" }).click();
  await page.getByRole("group", { name: "Output of cell 1", exact: true }).getByText("Echo: 1 + 1").waitFor();
  const agents = async () => (await it.call("GET", `/notebooks/${book.id}/agents`)).body.agents.length;
  assert.equal(await agents(), 1);
  const ended = page.waitForResponse((answer) => answer.request().method() === "DELETE");
  await stop.click();
  await page.locator('[data-runtime="none"]').waitFor();
  await page.getByRole("button", { name: /^kernel/ }).waitFor();
  // Its process ends a moment after it took its leave; Ward answers when it has.
  await ended;
  assert.equal(await agents(), 0);
});

test("a cell that asks is answered in the page, and what must not be shown is not", limit, async (t) => {
  const it = await serve(t, { env: { VIRTUAL_ENV: process.env.WARD_IPYKERNEL } });
  const { body: book } = await it.call("POST", "/notebooks", { title: "Asking" });
  const at = `/notebooks/${book.id}`;
  const cell = (cell_id, place, source) => ({ kind: "cell.created", cell_id, cell_type: "code", place, source });
  const events = [cell("a", "F", "a = input('First? ')\nb = input('Second? ')\nprint(a + b)"), cell("b", "K", "import getpass\nlen(getpass.getpass('Key: '))")];
  assert.equal((await it.call("POST", `${at}/events`, { events })).status, 200);
  const started = await it.call("POST", `${at}/agents`, { kernel: "python" });
  assert.equal(started.status, 201, JSON.stringify(started.body));
  const { page } = await open(t, it);
  await page.goto(`${it.url}/notebook#${at.replace("notebooks", "notebook")}`);
  await page.locator('[data-runtime^="ward-"][data-state="ready"]').waitFor();
  const box = (number) => page.getByRole("textbox", { name: `Answer to cell ${number}`, exact: true });
  const output = (number) => page.getByRole("group", { name: `Output of cell ${number}`, exact: true });

  await page.getByRole("button", { name: "Run cell 1", exact: true }).click();
  await page.locator(".nb-prompt", { hasText: "First? " }).waitFor();
  await page.getByText("waits for an answer").waitFor();
  await box(1).fill("for");
  await shot(page, "notebook-asks");
  await box(1).press("Enter");
  await page.locator(".nb-prompt", { hasText: "Second? " }).waitFor();
  assert.equal(await box(1).inputValue(), "");
  await box(1).fill("ty");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await output(1).getByText("forty").waitFor();
  await output(1).getByText("First? for").waitFor();
  assert.equal(await box(1).count(), 0);

  const secret = "correct horse";
  await page.getByRole("button", { name: "Run cell 2", exact: true }).click();
  // A box for a password is no text box.
  const hidden = page.getByLabel("Answer to cell 2", { exact: true });
  await hidden.waitFor();
  assert.equal(await hidden.getAttribute("type"), "password");
  await hidden.fill(secret);
  await shot(page, "notebook-asks-hidden");
  await hidden.press("Enter");
  await output(2).getByText(String(secret.length), { exact: true }).waitFor();
  await output(2).getByText("Key: ········").waitFor();
  assert.ok(!(await page.content()).includes(secret));
  // Nor does the browser keep it.
  const kept = await page.evaluate(() => new Promise((resolve) => {
    const request = indexedDB.open("ward-notebooks");
    request.onsuccess = async () => {
      const all = [...request.result.objectStoreNames].map((name) => new Promise((done) => {
        const asked = request.result.transaction(name).objectStore(name).getAll();
        asked.onsuccess = () => done(JSON.stringify(asked.result));
      }));
      resolve((await Promise.all(all)).join() + JSON.stringify({ ...localStorage, ...sessionStorage }));
    };
  }));
  assert.ok(kept.length > 100 && !kept.includes(secret));
});

test("a page that shows widgets talks to the kernel over the package, through the gate", limit, async (t) => {
  const it = await serve(t, { env: { VIRTUAL_ENV: process.env.WARD_IPYKERNEL } });
  const { body: book } = await it.call("POST", "/notebooks", { title: "Widgets" });
  const at = `/notebooks/${book.id}`;
  const source = "def opened(comm, message):\n    comm.on_msg(lambda said: comm.send({'twice': said['content']['data']['n'] * 2}))\nget_ipython().kernel.comm_manager.register_target('double', opened)";
  await it.call("POST", `${at}/events`, { events: [{ kind: "cell.created", cell_id: "a", cell_type: "code", place: "F", source }] });
  assert.equal((await it.call("POST", `${at}/agents`, { kernel: "python" })).status, 201);
  const built = await mkdtemp(join(tmpdir(), "ward-package-"));
  t.after(() => rm(built, { recursive: true, force: true }));
  await promisify(execFile)("node", [join(ui, "node_modules/typescript/bin/tsc"), "-p", "packages/runtime-browser", "--outDir", join(built, "dist")], { cwd: ui });
  const { context, page } = await open(t, it);
  // A page of the same site that uses the package, as somebody else's would.
  const kinds = { js: "text/javascript", wasm: "application/wasm" };
  await context.route((asked) => asked.pathname.startsWith("/package/"), async (route) => {
    const name = new URL(route.request().url()).pathname.slice("/package/".length);
    if (name === "") return route.fulfill({ body: "<!doctype html><title>Widgets</title>", contentType: "text/html" });
    await route.fulfill({ body: await readFile(join(name.startsWith("dist/") ? built : join(ui, "packages/runtime-browser"), name)), contentType: kinds[name.split(".").pop()] });
  });
  await page.goto(`${it.url}/package/`);
  const heard = await page.evaluate(async (notebook) => {
    const { openNotebook } = await import("/package/dist/index.js");
    const store = await openNotebook({ notebook, inMemory: true });
    await store.until(({ line, sessions }) => line === "open" && sessions.some(({ state }) => state === "ready"));
    const run = store.run("a");
    await store.until(({ executions }) => executions.some(({ execution_id, state }) => execution_id === run && state === "completed"));
    const answer = new Promise((resolve) => store.onComm(resolve));
    await store.sendComm({ type: "open", comm_id: "w", target_name: "double" });
    await store.sendComm({ type: "message", comm_id: "w", data: { n: 21 } });
    const { session_id, ...said } = await answer;
    const refused = await store.sendComm({ type: "open", comm_id: "w" }).catch((error) => error.kind);
    store.close();
    return { said, refused, from: typeof session_id };
  }, book.id);
  assert.deepEqual(heard, { said: { type: "message", comm_id: "w", data: { twice: 42 } }, refused: "invalid_params", from: "string" });
});
