// The page's way to Ward.

/** Asks Ward for a path, as the page does: with its cookie or its token. */
export type Ask = (path: string, init?: RequestInit) => Promise<Response>;

/** As a page that came from Ward itself does. */
export const sameOrigin: Ask = (path, init) => fetch(path, { ...init, credentials: "same-origin", cache: "no-store" });

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
