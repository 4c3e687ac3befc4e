// A way to Ward that a test can cut, and on which it can hold what it wants: the page does not know.

import { EventEmitter, once } from "node:events";
import { createServer, request } from "node:http";
import { connect } from "node:net";

/** A proxy in front of a Ward. `holds(request, body)` says what never arrives; `told` emits `held` then;
 *  `cut()` and `mend()` are the line. */
export async function between(t, it) {
  const ward = new URL(it.url);
  const line = { asked: [], holds: () => false, open: new Set(), told: new EventEmitter() };
  let whole = true;
  const server = createServer(async (asked, answer) => {
    line.asked.push(`${asked.method} ${asked.url}`);
    const pieces = [];
    asked.on("error", () => {});
    for await (const piece of asked) pieces.push(piece);
    const body = Buffer.concat(pieces);
    if (line.holds(asked, body.toString())) return void line.told.emit("held");
    const headers = { ...asked.headers, host: ward.host };
    if (headers.origin) headers.origin = ward.origin;
    const passed = request({ host: ward.hostname, port: ward.port, method: asked.method, path: asked.url, headers }, (came) => {
      answer.writeHead(came.statusCode, came.headers);
      answer.flushHeaders();
      came.pipe(answer);
    });
    passed.on("error", () => asked.socket.destroy());
    answer.on("close", () => passed.destroy());
    passed.end(body);
  });
  server.on("upgrade", (asked, socket) => {
    if (line.holds(asked, "")) return void socket.destroy();
    line.asked.push(`${asked.method} ${asked.url}`);
    const headers = { ...asked.headers, host: ward.host, origin: ward.origin };
    const passed = connect(ward.port, ward.hostname, () => {
      passed.write([`GET ${asked.url} HTTP/1.1`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), "", ""].join("\r\n"));
      socket.pipe(passed).pipe(socket);
    });
    for (const [one, other] of [[socket, passed], [passed, socket]]) one.on("error", () => {}).on("close", () => other.destroy());
  });
  server.on("connection", (socket) => {
    if (!whole) return void socket.destroy();
    line.open.add(socket);
    socket.on("close", () => line.open.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  line.url = `http://127.0.0.1:${server.address().port}`;
  line.cut = () => {
    whole = false;
    for (const socket of line.open) socket.destroy();
  };
  line.mend = () => {
    whole = true;
  };
  return line;
}
