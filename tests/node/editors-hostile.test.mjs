// Editors that mean no good: what they send is refused or dropped, and nobody else is harmed.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { createConnection } from "node:net";
import { test } from "node:test";
import { WebSocket } from "ws";
import { connect, editor } from "./editor.mjs";
import { limit, place } from "./host.mjs";
import { is, serve } from "./served.mjs";

/** Packet types of Socket.IO. */
const [EVENT, ACK] = [2, 3];

/** A good editor with an action under way, which `finish` answers and the hostile ones want. */
async function scene(t) {
  const it = await serve(t);
  let finish;
  const answered = new Promise((resolve) => (finish = resolve));
  const good = await editor(t, it, { act: () => answered });
  const action = it.call("POST", "/actions", { id: "good", action: "fs.read", params: { path: "x" }, runtime: good.id, wait: 60 });
  await it.until("/actions/good", (one) => one.state === "running");
  /** The good one is as it was: it prints, answers, and both arrive. */
  const unharmed = async () => {
    assert.equal((await it.call("GET", "/healthz")).status, 200);
    assert.equal((await it.call("GET", "/actions/good")).body.state, "running");
    good.socket.emit("action:output", { id: "good", seq: 0, stream: "stdout", data: "mine" });
    finish({ ok: true, result: { content: "mine" } });
    assert.deepEqual((await action).body.outcome?.result, { content: "mine" });
    const told = await it.tell("GET", "/actions/good/events?from=0");
    assert.equal((await told.all()).filter(is("action.output")).map((event) => event.data.data).join(""), "mine");
  };
  return { it, good, unharmed };
}

/** The most memory that it ever had, in MiB. */
async function peak(it) {
  const status = await readFile(`/proc/${it.ward.child.pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+)/.exec(status)[1]) / 1024;
}

test("output and answers for what runs elsewhere, and floods of them, are dropped", limit, async (t) => {
  const { it, unharmed } = await scene(t);
  const bad = await connect(t, it);
  for (let count = 0; count < 20_000; count++) bad.emit("action:output", { id: "good", seq: count, stream: "stdout", data: "forged" });
  // An answer names a request of its own connection; these name those of others.
  for (let id = 0; id < 100; id++) bad.packet({ type: ACK, id, data: [{ ok: true, result: { content: "forged" } }] });
  // A registered one, too, answers what it was not asked.
  const other = await editor(t, it);
  for (let id = 0; id < 100; id++) other.socket.packet({ type: ACK, id, data: [{ ok: true, result: { content: "forged" } }] });
  assert.equal((await it.call("POST", "/actions", { action: "fs.read", params: { path: "x" }, runtime: other.id })).body.outcome.status, "done");
  await unharmed();
});

test("an answer counts once: one that comes twice, after a cancel, or not as it has to be changes nothing", limit, async (t) => {
  const it = await serve(t);
  const late = [];
  const act = ({ id }, socket) => new Promise((resolve) => late.push({ id, resolve, socket }));
  const window = await editor(t, it, { act });
  let seen = 0;
  window.socket.on("action:execute", (request, acknowledge) => {
    if (request.id !== "twice") return;
    for (const content of ["first", "second", "third"]) acknowledge({ ok: true, result: { content } });
    // The client's own guard is passed over: the same packet again.
    window.socket.packet({ type: ACK, id: seen, data: [{ ok: true, result: { content: "again" } }] });
  });
  const twice = await it.call("POST", "/actions", { id: "twice", action: "fs.read", params: { path: "x" }, runtime: window.id });
  seen++;
  assert.deepEqual(twice.body.outcome.result, { content: "first" });
  const cancelled = it.call("POST", "/actions", { id: "cancelled", action: "fs.read", params: { path: "x" }, runtime: window.id });
  await it.until("/actions/cancelled", (one) => one.state === "running");
  await it.call("POST", "/actions/cancelled/cancel");
  assert.equal((await cancelled).body.outcome.kind, "cancelled");
  late.find(({ id }) => id === "cancelled")?.resolve({ ok: true, result: { content: "too late" } });
  for (const [id, answer] of [["text", "no object"], ["nothing", null], ["half", { result: {} }], ["list", [[[]]]]]) {
    const asked = it.call("POST", "/actions", { id, action: "fs.read", params: { path: "x" }, runtime: window.id });
    await it.until(`/actions/${id}`, (one) => one.state === "running");
    while (!late.some((one) => one.id === id)) await once(window.socket, "action:execute");
    late.find((one) => one.id === id).resolve(answer);
    assert.equal((await asked).body.outcome.kind, "bad_encoding", id);
  }
  assert.equal((await it.call("GET", "/actions/cancelled")).body.outcome.kind, "cancelled");
  assert.deepEqual((await it.call("GET", "/actions/twice")).body.outcome.result, { content: "first" });
});

test("an editor that says no is not the gate that does", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it, { act: () => ({ ok: false, error: "Not here.", kind: "denied" }) });
  const { status, body } = await it.call("POST", "/actions", { id: "no", action: "fs.read", params: { path: "x" }, runtime: window.id });
  assert.deepEqual([status, body.outcome?.status, body.outcome?.kind, body.outcome?.error], [200, "failed", "permission_denied", "Not here."], JSON.stringify(body));
});

test("100 MB at once are refused over either way, and are never in memory", limit, async (t) => {
  const { it, unharmed } = await scene(t);
  const before = await peak(it);
  const answer = await fetch(`${it.url}/socket.io/?EIO=4&transport=polling`);
  const { sid } = JSON.parse((await answer.text()).slice(1));
  const large = await fetch(`${it.url}/socket.io/?EIO=4&transport=polling&sid=${sid}`, { method: "POST", body: "4" + "x".repeat(100 << 20) }).then(({ status }) => status, () => "refused");
  assert.notEqual(large, 200);
  for (const transports of [["websocket"], ["polling"]]) {
    const bad = await connect(t, it, { transports });
    bad.emit("action:output", { id: "good", seq: 0, stream: "stdout", data: "y".repeat(100 << 20) });
    await once(bad, "disconnect");
  }
  assert.ok((await peak(it)) - before < 80, `${before} MiB became ${await peak(it)} MiB`);
  await unharmed();
});

test("answers that are dropped are in the log, and what the broker is sent is not", limit, async (t) => {
  const it = await serve(t, { at: { ...(await place(t)), stderr: "pipe" }, more: { WARD_LOG: "trace" } });
  let log = "";
  it.ward.child.stderr.on("data", (bytes) => (log += bytes));
  const logged = async (line, count) => {
    while (log.split(line).length - 1 < count) await once(it.ward.child.stderr, "data");
  };
  const window = await editor(t, it, { act: () => undefined });
  const other = await connect(t, it);
  const answer = (socket, id, content) => socket.packet({ type: ACK, id, data: [{ ok: true, result: { content } }] });
  const read = (id) => it.call("POST", "/actions", { id, action: "fs.read", params: { path: "x" }, runtime: window.id });
  const [first] = [read("first"), await once(window.socket, "action:execute")];
  answer(window.socket, 1, "first");
  assert.deepEqual((await first).body.outcome.result, { content: "first" });
  // Twice, and from a connection that was not asked.
  answer(window.socket, 1, "again");
  answer(other, 1, "foreign");
  await logged("ack not found: 1", 2);
  const [late] = [read("late"), await once(window.socket, "action:execute")];
  await it.call("POST", "/actions/late/cancel");
  assert.equal((await late).body.outcome.kind, "cancelled");
  answer(window.socket, 2, "a late word");
  await logged("an answer that came too late was dropped", 1);
  other.emit("action:output", { id: "first", seq: 0, stream: "stdout", data: "a foreign word" });
  await logged("output of an action that does not run there was dropped", 1);
  const polling = await editor(t, it, { options: { transports: ["polling"] } });
  await it.call("POST", "/actions", { action: "fs.write", params: { path: "x", content: "a polled word" }, runtime: polling.id });
  assert.equal(polling.asked[0].params.content, "a polled word");
  for (const secret of [it.token, "a late word", "a foreign word", "a polled word"]) assert.ok(!log.includes(secret), "it is in the log");
});

/** A websocket that says nothing but the largest part of a message; resolves when it is closed. */
function filling(url) {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = createConnection(Number(port), hostname);
    const closed = () => socket.destroy();
    socket.on("error", closed).on("end", closed).on("close", resolve);
    socket.once("data", (answer) => {
      if (!String(answer).includes(" 101 ")) return closed();
      const head = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
      socket.write(Buffer.concat([head, Buffer.alloc(15 << 20, "x")]));
    });
    socket.write(["GET /socket.io/?EIO=4&transport=websocket HTTP/1.1", `host: ${hostname}:${port}`, "connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", "", ""].join("\r\n"));
  });
}

test("who has not said who they are cannot fill the memory, over either way", limit, async (t) => {
  const { it, unharmed } = await scene(t);
  const before = await peak(it);
  const polling = async () => {
    const answer = await fetch(`${it.url}/socket.io/?EIO=4&transport=polling`);
    const { sid } = JSON.parse((await answer.text()).slice(1));
    return fetch(`${it.url}/socket.io/?EIO=4&transport=polling&sid=${sid}`, { method: "POST", body: "4" + "x".repeat(15 << 20) }).then(({ status }) => status, () => 413);
  };
  assert.deepEqual(new Set(await Promise.all(Array.from({ length: 20 }, polling))), new Set([413]));
  assert.ok((await peak(it)) - before < 40, `polling: ${before} MiB became ${await peak(it)} MiB`);
  await Promise.all(Array.from({ length: 60 }, () => filling(it.url)));
  assert.ok((await peak(it)) - before < 300, `websockets: ${before} MiB became ${await peak(it)} MiB`);
  // Their places are free again.
  for (const transports of [["websocket"], ["polling"], ["polling", "websocket"]]) await connect(t, it, { transports });
  await unharmed();
});

test("who begins a connection again and again and never says who they are cannot fill the memory", limit, async (t) => {
  const { it, unharmed } = await scene(t);
  const before = await peak(it);
  // Each as fast as it is answered, for longer than one may be silent, and until somebody was let in.
  const agent = new Agent({ keepAlive: true, maxSockets: 100 });
  t.after(() => agent.destroy());
  const begin = () => new Promise((resolve, reject) => {
    request(`${it.url}/socket.io/?EIO=4&transport=polling`, { agent }, (response) => response.resume().once("end", () => resolve(response.statusCode))).once("error", reject).end();
  });
  const end = Date.now() + 8000;
  let begun = 0;
  let isIn = false;
  const flood = Promise.all(Array.from({ length: 100 }, async () => {
    while (Date.now() < end || !isIn) if ((await begin()) === 200) begun++;
  }));
  // Whoever says it is let in meanwhile.
  while (begun < 600) await begin();
  await connect(t, it, { transports: ["polling"] });
  isIn = true;
  await flood;
  assert.ok((await peak(it)) - before < 60, `${begun} of them: ${before} MiB became ${await peak(it)} MiB`);
  for (const transports of [["polling"], ["polling", "websocket"]]) await connect(t, it, { transports });
  await unharmed();
});

test("another site's page opens no websocket, and begins no connection otherwise", limit, async (t) => {
  const it = await serve(t);
  const poll = async (headers) => (await fetch(`${it.url}/socket.io/?EIO=4&transport=polling`, { headers })).status;
  assert.deepEqual([await poll({ origin: "https://evil.example" }), await poll({ origin: it.url }), await poll({})], [403, 200, 200]);
  const open = (origin) => {
    const socket = new WebSocket(`${it.url.replace("http", "ws")}/socket.io/?EIO=4&transport=websocket`, { origin });
    t.after(() => socket.terminate());
    return once(socket, "open").then(() => "open", ({ message }) => message);
  };
  assert.match(await open("https://evil.example"), /403/);
  assert.equal(await open(it.url), "open");
});

test("packets that are none end their connection or nothing at all", limit, async (t) => {
  const { it, unharmed } = await scene(t);
  const bad = await connect(t, it);
  for (const output of [[{ id: 7 }], [], [null], [{ id: "good", seq: -1, stream: "stdout", data: "forged" }], [{ id: "good", seq: 0, stream: "elsewhere", data: "forged" }], [{ id: "good", seq: 1e300, stream: "stdout", data: "forged" }]]) bad.emit("action:output", ...output);
  bad.emit("no such event", { deep: [[[[[[]]]]]] });
  bad.packet({ type: EVENT, id: 2 ** 53, data: ["action:output", "x"] });
  const nested = "[".repeat(200_000) + "]".repeat(200_000);
  for (const packet of ["4 this is no packet", "9", "4", "42", "42[", "42{}", "43", "43[]", "439[", "4099999999999999999999[]", "451-[\"x\"]", "451-[{\"_placeholder\":true,\"num\":9}]", "42/elsewhere,[\"x\"]", `42["action:output",${nested}]`, `40${nested}`, "\u0000", "4\ud800", "b!!!!"]) {
    const socket = new WebSocket(`${it.url.replace("http", "ws")}/socket.io/?EIO=4&transport=websocket`);
    await once(socket, "open");
    socket.send(`40${JSON.stringify({ token: it.token })}`);
    socket.send(packet);
    socket.close();
    await once(socket, "close");
    const answer = await fetch(`${it.url}/socket.io/?EIO=4&transport=polling`);
    const { sid } = JSON.parse((await answer.text()).slice(1));
    const status = await fetch(`${it.url}/socket.io/?EIO=4&transport=polling&sid=${sid}`, { method: "POST", body: packet }).then((response) => response.status, () => "refused");
    assert.ok(status === "refused" || status < 500, `${packet.slice(0, 40)}: ${status}`);
  }
  await unharmed();
});

test("one person's connections and registrations have a limit, which is theirs alone", limit, async (t) => {
  const { it, unharmed } = await scene(t);
  const results = await Promise.allSettled(Array.from({ length: 150 }, () => connect(t, it, { transports: ["websocket"] })));
  const open = results.filter(({ status }) => status === "fulfilled").map(({ value }) => value);
  assert.equal(open.length, 127, "128 with the good one");
  for (const { reason } of results.filter(({ status }) => status === "rejected")) assert.match(reason.message, /128 connections of yours/);
  const statuses = [];
  for (const socket of open.slice(0, 70)) {
    statuses.push((await it.call("POST", "/runtimes", { socket_id: socket.id, kind: "vscode", workspace_path: it.workspace, capabilities: ["fs.read"] })).status);
  }
  assert.deepEqual([statuses.filter((status) => status === 201).length, new Set(statuses.slice(63))], [63, new Set([503])]);
  // What is away makes room.
  open[0].close();
  await it.until("/runtimes?kind=vscode", ({ runtimes }) => runtimes.some((one) => one.state === "away"));
  const post = await it.call("POST", "/runtimes", { socket_id: open[80].id, kind: "vscode", workspace_path: it.workspace, capabilities: ["fs.read"] });
  assert.equal(post.status, 201, JSON.stringify(post.body));
  await unharmed();
});

test("wrong tokens of handshakes and of requests are counted together, and a right one is let in at once", limit, async (t) => {
  const it = await serve(t);
  const guess = (token) => connect(t, it, { token, transports: ["websocket"] }).then(() => "let in", ({ message }) => message);
  // None at all is no guess.
  for (let count = 0; count < 20; count++) assert.match(await guess(null), /missing/);
  for (let count = 0; count < 9; count++) assert.match(await guess(`ward_person_wrong${count}`), /wrong, or was revoked/);
  const asked = () => fetch(`${it.url}/grants`, { headers: { authorization: "Bearer ward_person_wrong" } });
  assert.equal((await asked()).status, 401);
  assert.match(await guess("ward_person_wrong"), /too many wrong tokens/);
  assert.equal((await asked()).status, 429);
  assert.equal(await guess(it.token), "let in");
});

test("who does not say who they are is not kept waiting for", limit, async (t) => {
  const { it, unharmed } = await scene(t);
  const silent = new WebSocket(`${it.url.replace("http", "ws")}/socket.io/?EIO=4&transport=websocket`);
  await once(silent, "close");
  await unharmed();
});

for (const [who, says] of [
  ["says nothing", () => ""],
  ["asks for websockets and makes none", (port) => `GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`],
]) {
  test(`who opens connections and ${who} keeps nobody out`, limit, async (t) => {
    const it = await serve(t);
    const before = await editor(t, it, { options: { transports: ["websocket"] } });
    const port = Number(new URL(it.url).port);
    const silent = Array.from({ length: 640 }, () => createConnection(port, "127.0.0.1").on("error", () => {}));
    t.after(() => silent.forEach((socket) => socket.destroy()));
    for (const socket of silent) socket.write(says(port));
    // The oldest of them had to make room, and no others than had to.
    await once(silent[0].resume(), "close");
    assert.equal((await it.call("GET", "/healthz")).status, 200);
    assert.ok(silent.slice(300).every((socket) => !socket.resume().closed));
    const after = await editor(t, it);
    for (const { id } of [before, after]) {
      const { body } = await it.call("POST", "/actions", { action: "editor.open", params: { path: "x" }, runtime: id });
      assert.equal(body.outcome.status, "done", JSON.stringify(body));
    }
  });
}

test("what an editor says of its output and of what went wrong is bounded, and breaks nothing", limit, async (t) => {
  const it = await serve(t);
  const window = await editor(t, it, {
    act: ({ id }, socket) => {
      const most = "18446744073709551615";
      ["a", "b", "c"].forEach((_, seq) => socket.emit("action:output", { id, seq, stream: "dropped", data: most }));
      return { ok: false, error: "x".repeat(1_000_000), kind: "io" };
    },
  });
  const { body } = await it.call("POST", "/actions", { id: "much", action: "editor.open", params: { path: "x" }, runtime: window.id });
  assert.equal(body.outcome.kind, "io");
  assert.ok(body.outcome.error.length < 5_000, String(body.outcome.error.length));
  const events = await (await it.ask("GET", "/actions/much/events")).text();
  assert.match(events, /event: ?action\.dropped\n.*18446744073709551615/s);
});
