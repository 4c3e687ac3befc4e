// The page knows one workspace: the one that Ward was started with. In a window it is the window's own,
// so what the page leaves open is filled in here: pure.

export interface Here {
  /** A runtime by its id, or what it has to be. */
  runtime: string | { kind: string; workspace: string };
  workspace: string;
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
  // A conversation that is begun in this window acts in this window.
  if (method === "POST" && path === "/sessions") return as(path, with_(here));
  if (method === "POST" && path === "/actions") return as(path, with_({ workspace }));
  if (method === "GET" && path === "/roles") return as(`/roles?${new URLSearchParams({ workspace })}`);
  if (method === "GET" && path === "/healthz") return as(path, body, (piece) => piece.replace(/"workspace":"(?:[^"\\]|\\.)*"/, () => `"workspace":${JSON.stringify(workspace)}`));
  return as(path);
}
