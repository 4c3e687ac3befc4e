// The page's way to Ward.

import { line } from "./line.js";

/** Asks Ward for a path, as the page does: with its cookie or its token. */
export type Ask = (path: string, init?: RequestInit) => Promise<Response>;

/** As a page that came from Ward itself does; what is followed goes over the tab's websocket. */
export const sameOrigin: Ask = async (path, init) => {
  const headers = new Headers(init?.headers);
  const shared = headers.get("accept") === "text/event-stream" ? await line() : undefined;
  if (shared) return shared.follow(path, headers.get("last-event-id"), init?.signal);
  return fetch(path, { ...init, credentials: "same-origin", cache: "no-store" });
};

/** Ward's sentence about what failed. */
export async function sentence(response: Response): Promise<string> {
  try {
    const { error } = await response.json();
    if (typeof error === "string") return error;
  } catch {
    // Not Ward's own answer.
  }
  return `Ward answered ${response.status} without a reason.`;
}

/** A name that nobody else has. */
export function newName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
