// What the browser tests share: a Ward of their own, a browser that is signed in to it, and a model
// that says what a test wants, when it wants.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { chromium } from "playwright-core";

const ward = process.env.WARD_BIN;
assert.ok(ward, "WARD_BIN is not set: `cargo xtask test` sets it, or point it at a built ward");

/** How long one test may take. */
export const limit = { timeout: 240_000 };
/** How long anything on the page may take to appear. */
const PATIENCE = 40_000;

let launched;

/** One browser for all tests of a file. */
export function browser() {
  launched ??= chromium.launch({
    executablePath: process.env.WARD_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  return launched;
}

export async function closeBrowser() {
  await (await launched)?.close();
}

const endings = new WeakMap();

/** What is to be done after a test, the last that was made first: a page is closed before its Ward. */
function afterwards(t, end) {
  if (endings.has(t)) return endings.get(t).push(end);
  const all = [end];
  endings.set(t, all);
  t.after(async () => {
    const failed = [];
    for (const end of all.reverse()) await Promise.resolve().then(end).catch((error) => failed.push(error));
    if (failed.length > 0) throw failed[0];
  });
}

/** A home folder with a workspace in it. */
async function place(files) {
  const home = await realpath(await mkdtemp(join(tmpdir(), "ada-")));
  const workspace = join(home, "orders");
  await mkdir(workspace);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(workspace, name)), { recursive: true });
    await writeFile(join(workspace, name), content);
  }
  return { home, workspace };
}

/** `ward serve` with a workspace of its own, ended after the test. */
export async function serve(t, { files = { "README.md": "# A workspace\n\nWith a file in it.\n" }, env: more = {}, roles = {}, settings } = {}) {
  const at = await place(files);
  if (settings) {
    await mkdir(join(at.home, ".config/ward"), { recursive: true });
    await writeFile(join(at.home, ".config/ward/settings.toml"), settings);
  }
  for (const [name, text] of Object.entries(roles)) {
    const folder = join(at.home, ".config/ward/roles");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, `${name}.md`), text);
  }
  const env = { ...process.env, HOME: at.home, WARD_LOG: "error", ...more };
  for (const name of ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "WARD_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]) delete env[name];
  const it = { ...at };
  let exited;
  /** Starts it, on the port that it had before where it was started before. */
  it.start = async () => {
    const addr = it.url ? new URL(it.url).host : "127.0.0.1:0";
    it.child = spawn(ward, ["serve", "--no-open", "--addr", addr, "--workspace", at.workspace], { env, stdio: ["ignore", "pipe", "inherit"] });
    exited = once(it.child, "exit");
    let text = "";
    for await (const bytes of it.child.stdout) {
      text += bytes;
      if (text.includes("Ctrl-C")) break;
    }
    it.url = /Ward is on (http:\/\/\S+)/.exec(text)?.[1];
    it.link = /sign in +(http:\/\/\S+)/.exec(text)?.[1];
    assert.ok(it.link, `ward serve printed no link: ${text}`);
  };
  it.kill = async () => {
    it.child.kill("SIGKILL");
    await exited;
  };
  await it.start();
  afterwards(t, async () => {
    await it.kill();
    await rm(at.home, { recursive: true, force: true });
  });
  it.token = (await readFile(join(at.home, ".config/ward/token"), "utf8")).trim();
  it.call = async (method, path, body) => {
    const response = await fetch(it.url + path, {
      method,
      headers: { authorization: `Bearer ${it.token}`, ...(body && { "content-type": "application/json" }) },
      body: body && JSON.stringify(body),
    });
    return { status: response.status, body: response.status === 204 ? undefined : await response.json() };
  };
  return it;
}

/** A browser with a page that is signed in. Whatever goes wrong on it fails the test. */
export async function open(t, it, options = {}) {
  const context = await (await browser()).newContext({ viewport: { width: 1360, height: 900 }, reducedMotion: "reduce", ...options });
  afterwards(t, () => context.close());
  if (process.env.WARD_PAGE) await fromDisk(context);
  const page = await watched(t, context);
  const { body } = await it.call("POST", "/login");
  if (process.env.WARD_PAGE) {
    await context.request.get(body.url);
    await page.goto(`${it.url}/`);
  } else await page.goto(body.url);
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  return { context, page };
}

/** The page as it lies in ui/dist (WARD_PAGE), without building Ward anew; its policy is Ward's. */
async function fromDisk(context) {
  const dist = process.env.WARD_PAGE;
  // The browser does not know that what is given here came from this machine.
  await context.grantPermissions(["local-network-access"]);
  const kinds = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", wasm: "application/wasm" };
  await context.route((asked) => asked.pathname.startsWith("/assets/"), async (route) => {
    const name = new URL(route.request().url()).pathname.slice("/assets/".length);
    await route.fulfill({ body: await readFile(join(dist, name)), contentType: kinds[name.split(".").pop()] });
  });
  await context.route((asked) => asked.pathname === "/" || asked.pathname === "/notebook", async (route) => {
    const response = await route.fetch();
    if (!(await response.text()).includes("/assets/")) return route.fulfill({ response });
    const nonce = /'nonce-([^']+)'/.exec(response.headers()["content-security-policy"])?.[1];
    const body = await readFile(join(dist, "index.html"), "utf8");
    await route.fulfill({ response, body: body.replace("{{nonce}}", nonce) });
  });
}

/** A further page of the same browser. */
export async function watched(t, context) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.wrong = [];
  page.on("pageerror", (error) => page.wrong.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() !== "error") return;
    // What a test does on purpose: a Ward that was killed, a question that was answered already.
    if (/Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|net::ERR|^WebSocket connection to/.test(text)) return;
    page.wrong.push(`console: ${text}`);
  });
  page.on("dialog", (dialog) => {
    page.wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  afterwards(t, async () => {
    if (t.signal?.aborted || t.passed === false) await shot(page, `failed: ${t.name.slice(0, 60)}`).catch(() => {});
    assert.deepEqual(page.wrong, [], "nothing goes wrong on the page");
  });
  return page;
}

/** Writes a message and sends it; it has been told back by Ward when this returns. */
export async function say(page, text) {
  const before = await page.locator(".me-row").count();
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.getByRole("textbox", { name: "Message" }).press("Enter");
  await page.locator(".me-row").nth(before).waitFor();
}

/** The agent has stopped. */
export async function idle(page) {
  await page.locator('.talk[data-running="false"]').waitFor();
}

/** The question that is open, once its buttons take an answer. */
export function question(page) {
  return page.locator('.ask[data-armed="true"]').first();
}

/** A model that says what the test wants: `turns` are answered in order; `{refuse, why}` fails one. */
export async function model(t) {
  const it = { turns: [], asked: [] };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const bytes of request) body += bytes;
    if (!request.url.endsWith("/chat/completions")) {
      response.writeHead(404).end("{}");
      return;
    }
    const asked = JSON.parse(body);
    it.asked.push(asked);
    const turn = it.turns.shift() ?? [{ text: "There is nothing more to say." }];
    if (turn.refuse) {
      response.writeHead(turn.refuse, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: turn.why } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null) => {
      const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: asked.model, choices: [{ index: 0, delta, finish_reason }] };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    let calls = 0;
    for await (const part of typeof turn === "function" ? turn(asked) : turn) {
      if (response.destroyed) return;
      if (part.text !== undefined) send({ role: "assistant", content: part.text });
      if (part.reasoning !== undefined) send({ role: "assistant", reasoning_content: part.reasoning });
      if (part.call) {
        send({ tool_calls: [{ index: calls, id: `call-${it.asked.length}-${calls}`, type: "function", function: { name: part.call, arguments: JSON.stringify(part.with ?? {}) } }] });
        calls++;
      }
      if (part.wait) await part.wait;
    }
    send({}, calls > 0 ? "tool_calls" : "stop");
    response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: asked.model, choices: [], usage: { prompt_tokens: 120, completion_tokens: 30, total_tokens: 150 } })}\n\n`);
    response.end("data: [DONE]\n\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  it.env = { WARD_CHAT_BASE_URL: `http://127.0.0.1:${server.address().port}/v1`, WARD_CHAT_API_KEY: "k" };
  return it;
}

/** A session with that model, begun from outside and shown on the page. */
export async function begin(it, page, input, more = {}) {
  const { status, body } = await it.call("POST", "/sessions", { input, model: "chat/scripted", wait: 0, ...more });
  assert.ok(status < 300, JSON.stringify(body));
  await page.goto(`${it.url}/#/session/${body.session_id}`);
  return body.session_id;
}

export const shots = join(import.meta.dirname ?? ".", "shots");

export async function shot(page, name) {
  await mkdir(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`) });
}
