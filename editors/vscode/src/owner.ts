// Whose process answers at an address of this machine. While no Ward runs, another user could listen
// where it was, and would be sent the token.

import { readFile } from "node:fs/promises";

/** The users whose processes listen on a port, in one of the kernel's tables of connections. */
export function listeners(table: string, port: number): number[] {
  const LISTENS = "0A";
  return table.split("\n").slice(1).flatMap((line) => {
    const [, local, , state, , , , user] = line.trim().split(/\s+/);
    const at = parseInt(local?.split(":").at(-1) ?? "", 16);
    return state === LISTENS && at === port ? [Number(user)] : [];
  });
}

export function isLoopback(url: string): boolean {
  return ["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname);
}

/** How this machine reaches what listens at an address of it: at any address means also at loopback. */
export function near(address: string): string {
  return address.replace(/^0\.0\.0\.0:/, "127.0.0.1:").replace(/^\[::\]:/, "[::1]:");
}

/** The port of an address, also where it is left to the protocol. */
export function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return Number(port || (protocol === "https:" ? 443 : 80));
}

const looks = new Map<string, Promise<number | undefined>>();

/** The other user who listens at an address of this machine; nobody where that is this user or root, or
 *  cannot be known. Requests at the same moment share one look; none is kept, as the listener can change. */
export function stranger(url: string): Promise<number | undefined> {
  const under = looks.get(url) ?? look(url).finally(() => looks.delete(url));
  looks.set(url, under);
  return under;
}

async function look(url: string): Promise<number | undefined> {
  if (!isLoopback(url)) return undefined;
  const port = portOf(url);
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8").catch(() => "")));
  const own = [0, process.getuid?.()];
  return tables.flatMap((table) => listeners(table, port)).find((user) => !own.includes(user));
}
