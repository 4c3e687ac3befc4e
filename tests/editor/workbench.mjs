// What the editor tests share: a Ward of their own, a real workbench (code-server) with the packaged
// extension, and windows of it in a real browser.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const run = promisify(execFile);
const { WARD_BIN: ward, WARD_VSIX: vsix, WARD_CODE_SERVER: codeServer } = process.env;
for (const [name, value] of Object.entries({ WARD_BIN: ward, WARD_VSIX: vsix, WARD_CODE_SERVER: codeServer })) {
  assert.ok(value, `${name} is not set: \`cargo xtask test --all\` sets it`);
}
const node = join(codeServer, "node/bin/node");
const entry = join(codeServer, "node_modules/code-server/out/node/entry.js");

/** How long one test may take: the workbench is heavy. */
export const limit = { timeout: 240_000 };
export const PATIENCE = 60_000;

/** A home folder. */
export async function home() {
  return realpath(await mkdtemp(join(tmpdir(), "ward-editor-")));
}

/** A folder with files. */
export async function folder(path, files = {}) {
  await mkdir(path, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), content);
  }
  return path;
}

export function environment(home) {
  const env = { ...process.env, HOME: home, WARD_LOG: "error", EXTENSIONS_GALLERY: '{"serviceUrl":""}', SHELL: "/bin/bash" };
  for (const name of Object.keys(env)) if (/^(XDG_|WARD_TOKEN|ANTHROPIC_|OPENAI_|GEMINI_|VSCODE_)/.test(name)) delete env[name];
  return env;
}

/** `ward serve`, ended with `kill`. */
export async function serve(home, { beside = true } = {}) {
  const it = {};
  const workspace = await folder(join(home, "served"));
  let exited;
  /** Starts it, on the port that it had before where it was started before. */
  it.start = async () => {
    const addr = it.url ? new URL(it.url).host : "127.0.0.1:0";
    it.child = spawn(ward, ["serve", "--no-open", "--addr", addr, "--workspace", workspace], { env: environment(home), stdio: ["ignore", "pipe", "inherit"] });
    exited = once(it.child, "exit");
    let text = "";
    for await (const bytes of it.child.stdout) {
      text += bytes;
      if (text.includes("Ctrl-C")) break;
    }
    it.url = /Ward is on (http:\/\/\S+)/.exec(text)?.[1];
    assert.ok(it.url, `ward serve did not say where it is: ${text}`);
    if (!beside) await rm(join(home, ".local/share/ward/ward.sock"));
  };
  it.kill = async () => {
    it.child.kill("SIGKILL");
    await exited;
  };
  await it.start();
  it.token = (await readFile(join(home, ".config/ward/token"), "utf8")).trim();
  it.call = async (method, path, body) => {
    const response = await fetch(it.url + path, {
      method,
      headers: { authorization: `Bearer ${it.token}`, ...(body && { "content-type": "application/json" }) },
      body: body && JSON.stringify(body),
    });
    return { status: response.status, body: response.status === 204 ? undefined : await response.json() };
  };
  /** Asks again until the answer fits. */
  it.until = async (path, fits, patience = PATIENCE) => {
    const end = Date.now() + patience;
    for (;;) {
      const { status, body } = await it.call("GET", path).catch(() => ({ status: 0 }));
      if (status === 200 && fits(body)) return body;
      assert.ok(Date.now() < end, `${path} was never as wanted: ${JSON.stringify(body)?.slice(0, 800)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  /** The runtime of this folder, once it is ready. */
  it.runtime = async (workspace) => {
    const { runtimes } = await it.until("/runtimes?kind=vscode", ({ runtimes }) => runtimes.some((one) => one.workspace === workspace && one.state === "ready"));
    return runtimes.find((one) => one.workspace === workspace && one.state === "ready");
  };
  /** An action to its end. */
  it.act = async (runtime, action, params, more = {}) => {
    const { workspace } = (await it.call("GET", "/runtimes?kind=vscode")).body.runtimes.find((one) => one.runtime_id === runtime) ?? {};
    const { status, body } = await it.call("POST", "/actions", { action, params, runtime, workspace, ...more });
    return body.outcome ?? { status, ...body };
  };
  /** An action that asks, with the answer. */
  it.asked = async (runtime, action, params, { id, decision = "allow" } = {}) => {
    const { workspace } = (await it.call("GET", "/runtimes?kind=vscode")).body.runtimes.find((one) => one.runtime_id === runtime);
    id ??= `asked-${Math.random().toString(36).slice(2)}`;
    await it.call("POST", "/actions", { id, action, params, runtime, workspace, wait: 0 });
    const { state, outcome } = await it.until(`/actions/${id}`, ({ state }) => state === "asking" || state === "ended");
    assert.equal(state, "asking", `${action} ${JSON.stringify(params)} did not ask: ${JSON.stringify(outcome)}`);
    const { approvals } = await it.until("/approvals", ({ approvals }) => approvals.some((one) => one.action_id === id));
    const approval = approvals.find((one) => one.action_id === id);
    await it.call("POST", `/approvals/${approval.id}`, { decision, scope: "once", digest: approval.digest });
    return id;
  };
  /** What came of an action. */
  it.outcome = async (id) => (await it.until(`/actions/${id}`, ({ state }) => state === "ended")).outcome;
  /** What a stream tells, up to the event that fits; all of it where none does. */
  it.told = async (path, fits = () => false) => {
    const response = await fetch(it.url + path, { headers: { authorization: `Bearer ${it.token}`, accept: "text/event-stream" }, signal: AbortSignal.timeout(PATIENCE) });
    const events = [];
    let text = "";
    for await (const bytes of response.body) {
      text += Buffer.from(bytes).toString();
      for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
        const data = /^data: ?(.*)$/m.exec(text.slice(0, end))?.[1];
        if (data === undefined) continue;
        events.push({ event: /^event: ?(.*)$/m.exec(text.slice(0, end))?.[1], data: JSON.parse(data) });
        if (fits(events.at(-1))) return events;
      }
    }
    return events;
  };
  return it;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** A workbench with the extension in it. */
export async function workbench(home, settings = {}, { trust = false } = {}) {
  const data = join(home, "vscode");
  const extensions = join(home, "extensions");
  const all = {
    "security.workspace.trust.enabled": trust, "security.workspace.trust.startupPrompt": "always", "telemetry.telemetryLevel": "off", "workbench.startupEditor": "none", "chat.disableAIFeatures": true,
    "update.mode": "none", "extensions.autoUpdate": "off", "workbench.secondarySideBar.defaultVisibility": "hidden", "window.autoDetectColorScheme": false,
    "git.enabled": false, "files.autoSave": "off", "extensions.ignoreRecommendations": true, "terminal.integrated.gpuAcceleration": "off", "files.simpleDialog.enable": true, ...settings,
  };
  for (const part of ["User", "Machine"]) await folder(join(data, part), { "settings.json": JSON.stringify(all) });
  const flags = ["--user-data-dir", data, "--extensions-dir", extensions, "--disable-telemetry", "--disable-update-check"];
  const env = environment(home);
  await run(node, [entry, ...flags, "--install-extension", vsix, "--force"], { env });
  const port = await freePort();
  const child = spawn(node, [entry, ...flags, "--auth", "none", "--bind-addr", `127.0.0.1:${port}`, ...(trust ? [] : ["--disable-workspace-trust"]), "--disable-getting-started-override"], { env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (said = (said + bytes).slice(-20_000)));
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; ; tries++) {
    if (await fetch(`${url}/healthz`).then(({ ok }) => ok, () => false)) break;
    assert.ok(tries < 300, `code-server did not start: ${said}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return {
    url,
    home,
    /** Settings as the person would change them. */
    set: async (more) => {
      Object.assign(all, more);
      for (const part of ["User", "Machine"]) await writeFile(join(data, part, "settings.json"), JSON.stringify(all));
    },
    said: () => said,
    /** The processes that run the windows' extensions. */
    hosts: async () => {
      const { stdout } = await run("pgrep", ["-s", String(child.pid), "-f", "type=extensionHost"]);
      return stdout.trim().split("\n").map(Number);
    },
    end: async () => {
      // What it started is of its session: the pty host and the watchers would outlive it.
      await run("pkill", ["-KILL", "-s", String(child.pid)]).catch(() => {});
    },
  };
}

let launched;

function browser() {
  launched ??= chromium.launch({
    executablePath: process.env.WARD_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  return launched;
}

export async function closeBrowser() {
  await (await launched)?.close();
}

/** A window on a folder, in a browser of its own or in that of another window. */
export async function open(t, bench, path, beside) {
  const context = beside ?? await (await browser()).newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const window = new Window(page, context);
  t.after(async () => {
    if (t.passed === false) await window.shot(`failed: ${t.name.slice(0, 60)}`).catch(() => {});
    await context.close();
  });
  await page.goto(`${bench.url}/?${path.endsWith(".code-workspace") ? "workspace" : "folder"}=${path}`);
  await page.locator(".monaco-workbench").waitFor();
  // The extension is there once its item is.
  await window.status(/Ward/).waitFor();
  // A workbench that was slow to reach its files sometimes never reads which folders there are; a
  // person would load it again.
  const none = page.getByText("You have not yet added a folder to the workspace").first();
  for (let left = 3; left > 0 && await none.isVisible() && await none.waitFor({ state: "hidden", timeout: PATIENCE / 6 }).then(() => false, () => true); left--) {
    await page.reload();
    await window.status(/Ward/).waitFor();
  }
  return window;
}

export const shots = join(import.meta.dirname ?? ".", "shots");

/** A window of the workbench. */
export class Window {
  constructor(page, context) {
    this.page = page;
    this.context = context;
  }

  /** The status bar item, where it says this. */
  status(text) {
    return this.page.locator(".statusbar-item", { hasText: text }).first();
  }

  async command(title) {
    const input = this.page.locator(".quick-input-widget input").first();
    const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first();
    // Where the workbench takes the focus for something of its own, the list closes again.
    for (let left = 5; ; left--) {
      try {
        await this.page.keyboard.press("F1");
        await input.fill(`>${title}`, { timeout: PATIENCE / 5 });
        await row.waitFor({ timeout: PATIENCE / 5 });
        return await input.press("Enter", { timeout: PATIENCE / 5 });
      } catch (error) {
        if (left === 0) throw error;
      }
    }
  }

  async connect() {
    await this.command("Ward: Connect This Window");
    await this.status(/Ward: connected/).waitFor();
  }

  /** The frame of the chat, once it has this element. */
  async chat(selector = "textarea") {
    const end = Date.now() + PATIENCE;
    for (;;) {
      for (const frame of this.page.frames()) {
        if (await frame.locator(selector).count().catch(() => 0)) return frame;
      }
      assert.ok(Date.now() < end, `no webview has ${selector}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** What the editor shows as text, with its blanks as they are. */
  async text() {
    const lines = await this.page.locator(".editor-instance .view-line").allInnerTexts();
    return lines.map((line) => line.replaceAll("\u00a0", " ")).join("\n");
  }

  async shot(name) {
    await mkdir(shots, { recursive: true });
    await this.page.screenshot({ path: join(shots, `${name}.png`) });
  }
}

export { rm };

/** A place to test in, and what ends it. Unless Ward is `beside` the windows, they cannot reach its
 *  socket, as where it is on another machine: nothing confines what they run, so it asks. */
export async function stage(settings = {}, { beside = false, lease, trust } = {}) {
  const at = await home();
  if (lease) await folder(join(at, ".config/ward"), { "settings.toml": `[editors]\nlease = "${lease}"\n` });
  const ward = await serve(at, { beside });
  const bench = await workbench(at, { "ward.url": ward.url, ...settings }, { trust });
  const end = async () => {
    await closeBrowser();
    await bench.end();
    await ward.kill();
    await rm(at, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  };
  return { at, ward, bench, end };
}
