// The peer that Ward's broker is measured beside: npm's `socket.io` behind an HTTP server, written as
// one would write it in Node. It does what routing takes: who asks and who is connected is looked up by
// the hash of a token, a runtime is registered by who owns its connection, and an action goes to the
// one connection of that id, once it is that person's and can do it. It decides nothing about paths and
// records nothing.

import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Server } from "socket.io";

const hash = (token) => createHash("sha256").update(token).digest("hex");
const people = new Map(JSON.parse(process.env.TOKENS).map((token, index) => [hash(token), `person ${index}`]));
const runtimes = new Map();

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
  const deadline_ms = 600_000;
  const { ok, result, error } = await found.socket.timeout(deadline_ms).emitWithAck("action:execute", { id, action, params, deadline_ms });
  const duration_ms = Math.round(performance.now() - started);
  return [200, { id, state: "ended", outcome: ok ? { status: "done", result, duration_ms } : { status: "failed", error, duration_ms } }];
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
