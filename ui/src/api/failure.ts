// How asking Ward can fail, always as a sentence that a person can act on.

import type { ErrorKind } from "./schema";

export class Failure extends Error {
  constructor(
    sentence: string,
    readonly kind: ErrorKind | "unreachable",
    readonly status: number,
    readonly details: Record<string, unknown> = {},
  ) {
    super(sentence);
  }
}

export const unreachable = () =>
  new Failure("Ward does not answer. Is `ward serve` still running?", "unreachable", 0);

export async function failureOf(response: Response): Promise<Failure> {
  try {
    const { error, kind, code, ...details } = await response.json();
    if (typeof error === "string") return new Failure(error, kind, code ?? response.status, details);
  } catch {
    // Not Ward's own answer.
  }
  return new Failure(`Ward answered ${response.status} without a reason. Its log may say more.`, "internal", response.status);
}

export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
