// Where the page lives: a browser tab that Ward serves, or an editor's webview. Everything that
// differs between the two is here.

import { sameOrigin } from "@ward/runtime-browser/ask";

export interface Host {
  kind: "browser" | "webview";
  /** Where Ward answers, without a slash at the end; empty where the page came from it. */
  base: string;
  /** Says who is talking, where no cookie does. */
  token?: string;
  /** Lets style sheets that are made at run time in. */
  nonce: string;
  /** What the host wants to be shown first, such as a session. */
  start?: string;
  /** What was being written when the host let go of the page, by session. */
  drafts?: Record<string, string>;
  /** Keeps what is being written, where the host lets go of a page that is not seen. */
  keep?: (drafts: Record<string, string>) => void;
}

type Injected = Pick<Host, "base" | "start" | "drafts" | "keep"> & { token: string };

declare global {
  interface Window {
    /** Set by the extension before the bundle runs. */
    wardHost?: Injected;
  }
}

function find(): Host {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]');
  const nonce = meta?.nonce ?? "";
  const injected = window.wardHost;
  if (injected) return { kind: "webview", nonce, ...injected };
  return { kind: "browser", base: "", nonce };
}

export const host: Host = find();

/** Asks Ward, as this host does. */
export function ask(path: string, init: RequestInit = {}): Promise<Response> {
  if (host.kind === "browser") return sameOrigin(path, init);
  const headers = new Headers(init.headers);
  if (host.token) headers.set("authorization", `Bearer ${host.token}`);
  return fetch(host.base + path, { ...init, headers, credentials: host.token ? "omit" : "same-origin", cache: "no-store" });
}
