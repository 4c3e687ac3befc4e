// The page knows one workspace: the one that Ward was started with. In a window it is the window's own,
// so what the page leaves open is filled in here: pure.

/** Where a conversation acts that is begun here. */
export interface Here {
  /** A runtime by its id, or what it has to be. */
  runtime: string | { kind: string; workspace: string };
  /** Nothing where Ward is on another machine, which has no such folder: the runtime alone says where it is. */
  workspace?: string;
}

export interface Placed {
  path: string;
  body?: string;
  /** The answer as the page gets it. */
  told: (piece: string) => string;
}

export function placed(here: Here | undefined, method: string, path: string, body?: string): Placed {
  const as = (path: string, sent = body, told = (piece: string) => piece): Placed => ({ path, told, ...(sent !== undefined && { body: sent }) });
  if (!here) return as(path);
  const { workspace } = here;
  const with_ = (more: object) => JSON.stringify({ ...more, ...(JSON.parse(body ?? "{}") as object) });
  // A conversation that is begun in this window acts in this window, unless the page says where.
  if (method === "POST" && path === "/sessions") {
    const { runtime } = JSON.parse(body ?? "{}") as { runtime?: unknown };
    // A runtime by its id has a folder of its own.
    return typeof runtime === "string" && runtime !== "local" ? as(path) : as(path, with_(here));
  }
  if (workspace === undefined) return as(path);
  if (method === "POST" && path === "/actions") return as(path, with_({ workspace }));
  if (method === "GET" && path === "/roles") return as(`/roles?${new URLSearchParams({ workspace })}`);
  if (method === "GET" && path === "/healthz") return as(path, body, (piece) => piece.replace(/"workspace":"(?:[^"\\]|\\.)*"/, () => `"workspace":${JSON.stringify(workspace)}`));
  return as(path);
}
