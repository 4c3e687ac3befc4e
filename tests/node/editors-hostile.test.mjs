// Editors that mean no good: what they send is refused or dropped, and nobody else is harmed.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { WebSocket } from "ws";
import { connect, editor } from "./editor.mjs";
import { limit } from "./host.mjs";
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
