// The peer that Ward's broker is measured beside: npm's `socket.io` behind an HTTP server, written as
// one would write it in Node. It does what routing takes: who asks and who is connected is looked up by
// the hash of a token, a runtime is registered by who owns its connection, and an action goes to the
// one connection of that id, once it is that person's and can do it. It decides nothing about paths and
// records nothing.
//
// Where RECORDS names a file it is a gate as well, as one would write that in Node: it looks where a path
// leads, decides, and writes what is asked for, what was decided and what came of it, each as an entry of
// a hash-chained ledger and as an event of the action, before it goes on; with better-sqlite3, and what
// came within one turn of the loop in one transaction. It has no rules to go through, no grants, no
// secrets to take out and nobody to tell.

import { createHash, randomUUID } from "node:crypto";
import { realpathSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { resolve, sep } from "node:path";
import { Server } from "socket.io";

const hash = (token) => createHash("sha256").update(token).digest("hex");
const people = new Map(JSON.parse(process.env.TOKENS).map((token, index) => [hash(token), `person ${index}`]));
const runtimes = new Map();

const canonical = (value) =>
  JSON.stringify(value, (_, part) =>
    part && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );

class Records {
  #waiting = [];
  #seq = 0;
  #prev = "";

  constructor(Database, file) {
    const db = new Database(file);
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = NORMAL");
    db.exec("CREATE TABLE events (id INTEGER PRIMARY KEY, stream TEXT, at INTEGER, kind TEXT, data TEXT)");
    db.exec("CREATE INDEX places ON events (stream)");
    const insert = db.prepare("INSERT INTO events (stream, at, kind, data) VALUES (?, ?, ?, ?)");
    this.flush = db.transaction((batch) => {
      for (const { id, person, about } of batch) {
        const at = Date.now();
        for (const [kind, data] of about) {
          const entry = canonical({ action_id: id, actor: person, at, data, kind, prev: this.#prev, seq: ++this.#seq });
          this.#prev = hash(entry);
          insert.run("ledger", at, kind, `${entry.slice(0, -1)},"hash":"${this.#prev}"}`);
          insert.run(`action/${id}`, at, kind, JSON.stringify(data));
        }
      }
    });
  }

  /// Written when this is through.
  write(id, person, about) {
    return new Promise((done) => {
      if (this.#waiting.push({ id, person, about, done }) > 1) return;
      setImmediate(() => {
        const batch = this.#waiting;
        this.#waiting = [];
        this.flush(batch);
        for (const { done } of batch) done();
      });
    });
  }
}

const records = process.env.RECORDS && new Records((await import("better-sqlite3")).default, process.env.RECORDS);

/// Where a path leads, and whether that is inside.
function decide(workspace, action, params) {
  const root = realpathSync(workspace);
  const path = realpathSync(resolve(root, params.path));
  const kind = statSync(path).isDirectory() ? "directory" : "file";
  const facts = { paths: [{ path, access: "read", kind }] };
  const verdict = path.startsWith(root + sep) ? "allow" : "deny";
  return { facts, verdict, digest: hash(canonical({ action, params, facts })), rule: { kind: "skill", text: action } };
}

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function register(person, { socket_id, kind, workspace_path, capabilities }) {
  const socket = io.sockets.sockets.get(socket_id);
  if (socket?.data.person !== person) throw new Refused(403, "this connection is not yours");
  const runtime_id = randomUUID();
  runtimes.set(runtime_id, { person, socket, kind, workspace_path, capabilities: new Set(capabilities) });
  return [201, { runtime_id, lease_s: 60 }];
}

async function act(person, { id = randomUUID(), action, params, runtime }) {
  const found = runtimes.get(runtime);
  if (found?.person !== person) throw new Refused(404, "there is no such runtime of yours");
  if (!found.capabilities.has(action)) throw new Refused(422, "it cannot do this");
  const started = performance.now();
  if (records) {
    const decision = decide(found.workspace_path, action, params);
    await records.write(id, person, [
      ["request", { action, params, mode: "sandbox" }],
      ["decision", decision],
    ]);
    if (decision.verdict !== "allow") throw new Refused(403, "this leads out of the workspace");
  }
  const deadline_ms = 600_000;
  const { ok, result, error } = await found.socket.timeout(deadline_ms).emitWithAck("action:execute", { id, action, params, deadline_ms });
  const duration_ms = Math.round(performance.now() - started);
  const outcome = ok ? { status: "done", result, duration_ms } : { status: "failed", error, duration_ms };
  if (records) await records.write(id, person, [["outcome", outcome]]);
  return [200, { id, state: "ended", outcome }];
}

const server = createServer(async (request, response) => {
  const answer = (status, body) => {
    const text = JSON.stringify(body);
    response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    response.end(text);
  };
  try {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const person = token && people.get(hash(token));
    if (!person) throw new Refused(401, "say who you are");
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += piece;
    const operation = { "POST /runtimes": register, "POST /actions": act }[`${request.method} ${request.url}`];
    if (!operation) throw new Refused(404, "there is nothing here");
    answer(...(await operation(person, JSON.parse(text))));
  } catch (error) {
    answer(error.status ?? 500, { error: error.message });
  }
});

const io = new Server(server, { serveClient: false, maxHttpBufferSize: 16 << 20 });
io.use((socket, next) => {
  const { token } = socket.handshake.auth;
  socket.data.person = typeof token === "string" ? people.get(hash(token)) : undefined;
  next(socket.data.person ? undefined : new Error("the token is wrong"));
});
io.on("connection", (socket) => {
  socket.on("action:output", () => {});
  socket.on("disconnect", () => {
    for (const [id, runtime] of runtimes) if (runtime.socket === socket) runtimes.delete(id);
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
