// Where the page is, kept in the address behind the `#`: the browser's back and forward work, and
// the same holds in an editor's webview.

import { host } from "../host";
import { Store } from "./store";

export const PLACES = ["approvals", "grants", "ledger", "runtimes", "roles", "settings"] as const;
export type Place = (typeof PLACES)[number];

export type Route = { at: "new" } | { at: "session"; id: string } | { at: Place };

export function address(route: Route): string {
  if (route.at === "new") return "#/";
  return route.at === "session" ? `#/session/${encodeURIComponent(route.id)}` : `#/${route.at}`;
}

function read(hash: string): Route {
  const [first, second] = hash.replace(/^#\/?/, "").split("/");
  if (first === "session" && second) {
    try {
      return { at: "session", id: decodeURIComponent(second) };
    } catch {
      return { at: "new" };
    }
  }
  const place = PLACES.find((place) => place === first);
  return place ? { at: place } : { at: "new" };
}

export const route = new Store<Route>(read(location.hash || host.start || ""));

addEventListener("hashchange", () => route.set(read(location.hash)));

export function go(to: Route): void {
  location.hash = address(to);
}
