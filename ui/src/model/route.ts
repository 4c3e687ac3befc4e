// Where the page is, kept in the address behind the `#`: the browser's back and forward work, and
// the same holds in an editor's webview. A notebook has a document of its own, which may do more.

import { host } from "../host";
import { Store } from "./store";

export const PLACES = ["approvals", "notebooks", "grants", "ledger", "runtimes", "roles", "settings"] as const;
export type Place = (typeof PLACES)[number];

export type Route = { at: "new" } | { at: "session"; id: string } | { at: "notebook"; id: string } | { at: Place };

/** The document that shows this. */
function document_of(route: Route): string {
  return route.at === "notebook" ? "/notebook" : "/";
}

/** Whether this document is the one that shows it. An editor's webview has only one. */
function here(route: Route): boolean {
  return host.kind === "webview" || location.pathname === document_of(route);
}

export function address(route: Route): string {
  const hash = route.at === "new" ? "#/" : "id" in route ? `#/${route.at}/${encodeURIComponent(route.id)}` : `#/${route.at}`;
  return here(route) ? hash : document_of(route) + hash;
}

function read(hash: string): Route {
  const [first, second] = hash.replace(/^#\/?/, "").split("/");
  if ((first === "session" || (first === "notebook" && host.kind === "browser")) && second) {
    try {
      return { at: first, id: decodeURIComponent(second) };
    } catch {
      return { at: "new" };
    }
  }
  const place = PLACES.find((place) => place === first);
  return place ? { at: place } : { at: "new" };
}

/** What is asked for, where this document shows it; else the other document is loaded. */
function arrive(hash: string): Route | undefined {
  const asked = read(hash);
  if (here(asked)) return asked;
  location.replace(address(asked));
  return undefined;
}

export const route = new Store<Route>(arrive(location.hash || host.start || "") ?? { at: "new" });

addEventListener("hashchange", () => {
  const asked = arrive(location.hash);
  if (asked) route.set(asked);
});

export function go(to: Route): void {
  location.assign(address(to));
}
