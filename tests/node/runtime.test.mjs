// A host in Node, with npm's vscode-jsonrpc, drives `ward runtime` as an editor would.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, readlink, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import rpc from "vscode-jsonrpc/node.js";
import { converse, limit, start } from "./host.mjs";

const stdio = ["runtime", "--stdio"];

async function client(t, more = []) {
  const runtime = await start(t, [...stdio, ...more]);
  return { ...runtime, ...converse(runtime.child.stdout, runtime.child.stdin) };
}

async function initialised(t, more) {
  const it = await client(t, more);
  await it.connection.sendRequest("initialize", { client: { name: "test" } });
  return it;
}

/** The processes on this machine that have this word among theirs. */
async function processesWith(word) {
  const found = [];
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (line.split("\0").includes(word)) found.push(Number(pid));
  }
  return found;
}

async function untilProcesses(word, count) {
  while ((await processesWith(word)).length !== count) await pause(2);
}

let sleeps = 0;
/** A number of seconds that nobody else sleeps. */
const oddSeconds = () => `${200_000 + process.pid}.${sleeps++}`;

async function refused(promise, kind, code = -32000) {
  const error = await promise.then(
    (result) => assert.fail(`it was done: ${JSON.stringify(result)}`),
    (error) => error,
  );
  assert.ok(error instanceof rpc.ResponseError, String(error));
  assert.deepEqual({ kind: error.data?.kind, code: error.code }, { kind, code }, error.message);
  assert.match(error.message, /^\S+ .*\.$/s, "a sentence");
  return error;
}

test("initialize comes first and says what there is", limit, async (t) => {
  const it = await client(t);
  await refused(it.execute("fs.stat", { path: "." }), "not_initialized", -32002);
  const answer = await it.connection.sendRequest("initialize", {});
  assert.equal(answer.name, "ward");
  assert.match(answer.version, /^\d+\.\d+\.\d+/);
  assert.equal(answer.workspace, it.workspace);
  assert.equal(answer.authority, "standalone");
  assert.ok(["room", "walls", "none"].includes(answer.sandbox.tier));
  assert.ok(answer.sandbox.layers.length > 0);
  const read = answer.actions.find((action) => action.name === "fs.read");
  assert.equal(read.params.properties.path.type, "string");
  assert.deepEqual(read.params.required, ["path"]);
});

test("files are written, read, edited, searched and listed", limit, async (t) => {
  const it = await initialised(t);
  const written = await it.execute("fs.write", { path: "src/poem.txt", content: "rose\nröse\nrose\n" });
  assert.equal(written.created, true);
  assert.equal(await readFile(join(it.workspace, "src/poem.txt"), "utf8"), "rose\nröse\nrose\n");

  const read = await it.execute("fs.read", { path: "src/poem.txt", offset: 2, limit: 1 });
  assert.equal(read.content, "röse\n");
  assert.equal(read.digest, written.digest);
  assert.equal(read.truncated, true);

  const edited = await it.execute("fs.edit", {
    path: "src/poem.txt",
    edits: [{ old: "röse", new: "thorn" }],
    expect: written.digest,
  });
  assert.match(edited.diff, /^-röse\n\+thorn$/m);
  assert.equal(await readFile(join(it.workspace, "src/poem.txt"), "utf8"), "rose\nthorn\nrose\n");

  const found = await it.execute("fs.search", { pattern: "th.rn" });
  assert.deepEqual(
    found.matches.map(({ path, line, column, text }) => ({ path, line, column, text })),
    [{ path: "src/poem.txt", line: 2, column: 1, text: "thorn" }],
  );
  const listed = await it.execute("fs.list", { depth: 2 });
  assert.deepEqual(listed.entries.map((entry) => entry.path), ["src", "src/poem.txt"]);
});

test("a command's output is streamed while it runs", limit, async (t) => {
  const it = await initialised(t);
  const line = "echo ready; while [ ! -e go ]; do sleep 0.01; done; echo grüße; printf '\\377' >&2; exit 3";
  const running = it.execute("terminal.run", { command: line }, { id: "run" });
  await it.until((told) => told.id === "run" && told.data === "ready\n");
  await writeFile(join(it.workspace, "go"), "");
  const result = await running;
  assert.equal(result.exit_code, 3);
  assert.equal(result.stdout, "ready\ngrüße\n");
  assert.deepEqual([result.stderr, result.stderr_encoding], ["/w==", "base64"]);
  assert.equal(result.timed_out, false);
  assert.equal(result.truncated, false);
  assert.equal(it.printed("run", "stdout"), "ready\ngrüße\n");
  assert.equal(it.printed("run", "stderr"), "\xff");
});

test("a cancelled command is gone within 200 ms, with all it started", limit, async (t) => {
  const it = await initialised(t);
  // The machine may be busy with other tests: the best of three counts.
  const times = [];
  while (times.length < 3 && !(times.at(-1) < 200)) {
    const seconds = oddSeconds();
    const line = `sleep ${seconds} & (setsid sleep ${seconds} &); sleep ${seconds}; true`;
    const source = new rpc.CancellationTokenSource();
    const running = it.execute("terminal.run", { command: line }, { cancel: source.token });
    const ended = refused(running, "cancelled", -32800);
    await untilProcesses(seconds, 3);
    const started = await processesWith(seconds);
    const asked = performance.now();
    source.cancel();
    while (started.some((pid) => existsSync(`/proc/${pid}`))) await pause(1);
    times.push(performance.now() - asked);
    await ended;
    assert.deepEqual(await processesWith(seconds), []);
  }
  assert.ok(times.at(-1) < 200, `gone after ${times} ms`);
  // The connection is as good as before.
  assert.equal((await it.execute("terminal.run", { argv: ["true"] })).exit_code, 0);
});

test("a terminal is typed into, resized, read and closed", limit, async (t) => {
  const it = await initialised(t);
  const { terminal_id } = await it.execute("terminal.open", { cols: 90, rows: 20 }, { id: "open" });
  const shows = (text) => it.until(() => it.printed("open", "pty").includes(text));
  await it.execute("terminal.write", { terminal_id, data: "stty size; tty\n" });
  await shows("20 90");
  await shows("/dev/pts/");
  await it.execute("terminal.resize", { terminal_id, cols: 100, rows: 25 });
  await it.execute("terminal.write", { terminal_id, data: "stty size\n" });
  await shows("25 100");
  const { terminals } = await it.execute("terminal.list", {});
  assert.deepEqual(terminals.map(({ kind, running }) => ({ kind, running })), [{ kind: "pty", running: true }]);
  const read = await it.execute("terminal.read", { terminal_id });
  assert.ok(read.data.includes("25 100"));
  await it.execute("terminal.write", { terminal_id, data: "exit 5\n" });
  const exited = await it.until((told) => told.method === "terminal/exited");
  assert.deepEqual([exited.id, exited.terminal_id, exited.exit_code], ["open", terminal_id, 5]);
  await it.execute("terminal.close", { terminal_id });
  await refused(it.execute("terminal.read", { terminal_id }), "unknown_terminal");
});

test("failures have a kind and a sentence", limit, async (t) => {
  const it = await initialised(t);
  await symlink("/etc", join(it.workspace, "out"));
  await writeFile(join(it.workspace, "a"), "x x");
  const stat = (path) => it.execute("fs.read", { path });
  await refused(stat("nothing"), "not_found");
  await refused(stat("../secret"), "outside_workspace");
  await refused(stat("/etc/passwd"), "outside_workspace");
  await refused(stat("out/passwd"), "outside_workspace");
  await refused(stat("."), "not_a_file");
  await refused(it.execute("fs.read", {}), "invalid_params", -32602);
  await refused(it.execute("fs.read", { path: "a", colour: 1 }), "invalid_params", -32602);
  await refused(it.execute("fs.edit", { path: "a", edits: [{ old: "y", new: "z" }] }), "no_match");
  await refused(it.execute("fs.edit", { path: "a", edits: [{ old: "x", new: "z" }] }), "ambiguous_match");
  await refused(it.execute("fs.search", { pattern: "(" }), "bad_pattern");
  await refused(it.execute("terminal.run", { argv: ["no-such-program"] }), "command_not_found");
  await refused(it.execute("fs.fly", {}), "unknown_action");
  await refused(it.connection.sendRequest("action/fly", {}), "method_not_found", -32601);
  await refused(
    it.connection.sendRequest("action/execute", { id: "p", action: "fs.stat", params: { path: "." }, permit: {} }),
    "standalone",
  );
  const { facts } = await it.connection.sendRequest("action/resolve", { action: "fs.write", params: { path: "a", content: "b" } });
  await writeFile(join(it.workspace, "a"), "changed by someone");
  await refused(
    it.connection.sendRequest("action/execute", {
      id: "w", action: "fs.write", params: { path: "a", content: "b" }, expect: facts,
    }),
    "changed",
    -32801,
  );
  await it.execute("fs.mkdir", { path: "d" }, { id: "same" });
  await refused(it.execute("fs.mkdir", { path: "e" }, { id: "same" }), "conflict");
  assert.equal(existsSync(join(it.workspace, "e")), false);
});

test("many requests in flight are all answered", limit, async (t) => {
  const it = await initialised(t);
  await writeFile(join(it.workspace, "a"), "hello");
  const answers = await Promise.all(Array.from({ length: 800 }, () => it.execute("fs.read", { path: "a" })));
  assert.deepEqual(new Set(answers.map((answer) => answer.content)), new Set(["hello"]));
});

test("what cannot be read is answered, and the stream goes on", limit, async (t) => {
  const it = await start(t, stdio);
  const answers = [];
  const reader = new rpc.StreamMessageReader(it.child.stdout);
  let look = () => {};
  reader.listen((message) => {
    answers.push(message);
    look();
  });
  const body = JSON.stringify({ jsonrpc: "2.0", id: "a", method: "initialize", params: {} });
  const bytes = Buffer.byteLength(body);
  it.child.stdin.write("Content-Length: 3\r\n\r\n{{{");
  it.child.stdin.write("Content-Length: soon\r\n\r\n{}");
  it.child.stdin.write("Content-Length: 2\r\n\r\n[]");
  it.child.stdin.write(`content-type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length: ${bytes}\r\n\r\n`);
  for (const byte of Buffer.from(body)) it.child.stdin.write(Buffer.of(byte));
  await new Promise((resolve) => (look = () => answers.length === 4 && resolve()));
  assert.deepEqual(
    answers.slice(0, 3).map(({ id, error }) => [id, error.code, error.data.kind]),
    [
      [null, -32700, "parse_error"],
      [null, -32700, "parse_error"],
      [null, -32600, "invalid_request"],
    ],
  );
  assert.deepEqual([answers[3].id, answers[3].result.name], ["a", "ward"]);
});

test("a message above the limit that was set is answered, and the next one is taken", limit, async (t) => {
  const it = await start(t, [...stdio, "--frame-limit", "4K"]);
  const answers = [];
  const enough = new Promise((resolve) => {
    new rpc.StreamMessageReader(it.child.stdout).listen((message) => answers.push(message) === 3 && resolve());
  });
  const send = (id, method, params) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    it.child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };
  const write = (path, bytes) => ({ id: path, action: "fs.write", params: { path, content: "x".repeat(bytes) } });
  send(1, "initialize", {});
  send(2, "action/execute", write("large.txt", 5000));
  send(3, "action/execute", write("small.txt", 3000));
  await enough;
  const told = Object.fromEntries(answers.map(({ id, error }) => [id, error?.data.kind]));
  assert.deepEqual(told, { 1: undefined, 2: "frame_too_large", 3: undefined });
  assert.deepEqual(await readdir(it.workspace), ["small.txt"]);
});

test("once it has begun it holds less of its code in memory than its start needed", limit, async (t) => {
  const it = await client(t);
  const program = await readlink(`/proc/${it.child.pid}/exe`);
  /** How much of its code is resident, in kB, counted page by page. */
  const code = async () => {
    const maps = (await readFile(`/proc/${it.child.pid}/smaps`, "utf8")).split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
    const own = maps.filter((map) => / r-xp /.test(map) && map.split("\n", 1)[0].endsWith(` ${program}`));
    return own.reduce((sum, map) => sum + Number(/^Rss: +(\d+)/m.exec(map)[1]), 0);
  };
  await refused(it.execute("fs.stat", { path: "." }), "not_initialized", -32002);
  const before = await code();
  await it.connection.sendRequest("initialize", {});
  const after = await code();
  assert.ok(after < before, `${after} kB after ${before} kB`);
  assert.equal((await it.execute("terminal.run", { argv: ["true"] })).exit_code, 0);
});

test("commands reach the hosts that were named, and no other", limit, async (t) => {
  const server = createServer((_, response) => response.end("hello"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const host = `127.0.0.1:${server.address().port}`;
  const it = await initialised(t, ["--net", host]);
  const curl = (at) => it.execute("terminal.run", { command: `curl -sS --fail --noproxy '' http://${at}/` });
  assert.equal((await curl(host)).stdout, "hello");
  const refused = await curl("127.0.0.1:1");
  assert.deepEqual(refused.sandbox.stopped, [{ access: "connect", target: "127.0.0.1:1" }]);
});

test("after shutdown only exit is taken, and nothing is left", limit, async (t) => {
  const it = await initialised(t);
  const seconds = oddSeconds();
  await it.execute("terminal.run", { command: `(setsid sleep ${seconds} &); sleep ${seconds}`, background: true });
  await untilProcesses(seconds, 2);
  assert.equal(await it.connection.sendRequest("shutdown"), null);
  assert.deepEqual(await processesWith(seconds), []);
  await refused(it.execute("fs.stat", { path: "." }), "shutting_down");
  await it.connection.sendNotification("exit");
  const [code, signal] = await it.exited;
  assert.deepEqual([code, signal], [0, null]);
});

for (const [how, end] of [
  ["the host closes its end", (child) => child.stdin.end()],
  ["SIGTERM arrives", (child) => child.kill("SIGTERM")],
]) {
  test(`when ${how}, the runtime ends and leaves no process`, limit, async (t) => {
    const it = await initialised(t);
    const seconds = oddSeconds();
    const line = `(setsid sleep ${seconds} &); trap '' TERM HUP; sleep ${seconds}; true`;
    it.execute("terminal.run", { command: line }).catch(() => {});
    await it.execute("terminal.open", { command: line });
    await untilProcesses(seconds, 4);
    it.connection.onError(() => {});
    end(it.child);
    const [code, signal] = await it.exited;
    assert.deepEqual([code, signal], [0, null]);
    assert.deepEqual(await processesWith(seconds), []);
  });
}

test("on a port the token lets in, and nothing else does", limit, async (t) => {
  const runtime = await start(t, ["runtime", "--listen", "127.0.0.1:0"]);
  let text = "";
  for await (const piece of runtime.child.stdout) {
    text += piece;
    if (/token.*\n/.test(text)) break;
  }
  const port = Number(text.match(/127\.0\.0\.1:(\d+)/)[1]);
  const token = text.match(/token +(\S+)/)[1];
  const dial = async () => {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    t.after(() => socket.destroy());
    return { socket, ...converse(socket, socket) };
  };

  const wrong = await dial();
  const closed = once(wrong.socket, "close");
  await refused(wrong.connection.sendRequest("initialize", { token: `${token}x` }), "unauthorized");
  await closed;
  const [one, two] = [await dial(), await dial()];
  for (const it of [one, two]) {
    assert.equal((await it.connection.sendRequest("initialize", { token })).name, "ward");
  }
  await one.execute("terminal.run", { command: "sleep 1000", background: true });
  assert.equal((await one.execute("terminal.list", {})).terminals.length, 1);
  assert.equal((await two.execute("terminal.list", {})).terminals.length, 0);
});
