// What goes to which Ward, and what is taken from it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, utimes, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Assets } from "../src/assets";
import { Connection } from "../src/connection";
import { Ward } from "../src/ward";
import { moment } from "./scene";
import { bench, isThere, log, Uri } from "./vscode";

/** Whoever listens where a Ward was: it opens a connection, and notes what it is sent. */
async function listener(t: TestContext) {
  const heard: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const bytes of request) body += String(bytes);
    heard.push(`${request.method} ${request.headers.authorization ?? ""}${body}`);
    response.end(request.method === "GET" && heard.length === 1 ? `0${JSON.stringify({ sid: "s", upgrades: [], pingInterval: 25_000, pingTimeout: 20_000, maxPayload: 100_000 })}` : "ok");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => (server.closeAllConnections(), server.close()));
  return { heard, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function connects(ward: Ward): Promise<unknown> {
  bench.reset(await mkdtemp(join(tmpdir(), "ward-wards-")));
  const finder = { find: async () => ward, started: () => false, inUse: async () => true };
  const connection = new Connection(finder as never, log as never, "0", { get: (_: string, usual: unknown) => usual } as never);
  try {
    return await Promise.race([connection.connect("quiet").catch((error: Error) => error.message), moment(3000)]);
  } finally {
    connection.dispose();
  }
}

test("another user who listens where a Ward was is sent no connection", async (t) => {
  const { heard, url } = await listener(t);
  // It is this user's own, and was to be another's.
  const said = await connects(new Ward({ url, token: "secret", owner: 12345 }));
  assert.deepEqual(heard, []);
  assert.match(String(said), /another user's no longer/);
});

test("a listener that came while the connection was opened does not get the token", async (t) => {
  const { heard, url } = await listener(t);
  const ward = new Ward({ url, token: "secret" });
  let looks = 0;
  ward.look = async () => {
    if (++looks > 1) throw new Error("Somebody else listens there now.");
  };
  const said = await connects(ward);
  assert.ok(heard.length > 0 && !heard.join().includes("secret"), heard.join());
  assert.match(String(said), /Somebody else/);
});

/** A Ward that says of its page what it likes. */
function serves(url: string, html: string, script: string): Ward {
  const ask = async (path: string) => new Response(path === "/" ? html : path.endsWith(".js") ? script : "css");
  return Object.assign(new Ward({ url, token: "" }), { ask });
}

test("a page consists of what its own Ward serves, however others call their parts", async () => {
  const storage = await mkdtemp(join(tmpdir(), "ward-assets-"));
  const html = `<link rel="stylesheet" href="/assets/main-A.css">\n<script type="module" src="/assets/main-A.js"></script>`;
  const script = async (ward: Ward) => {
    const { folder, script } = await new Assets(Uri.file(storage) as never).fetch(ward);
    return readFile(join(folder.fsPath, script), "utf8");
  };
  assert.equal(await script(serves("http://evil.example", html, "evil")), "evil");
  assert.equal(await script(serves("http://127.0.0.1:3000", html, "good")), "good");
  // What was fetched once is kept.
  assert.equal(await script(serves("http://127.0.0.1:3000", html, "not asked")), "good");
  assert.equal(await script(serves("http://127.0.0.1:3000", `${html}<p>`, "newer")), "newer");
  // Not for ever, and nothing of before they were kept apart.
  const old = join(storage, "page/main-A.js");
  await writeFile(old, "old");
  await utimes(old, 1, 1);
  await script(serves("http://127.0.0.1:3000", html, ""));
  assert.equal(isThere(old), false);
});
