// How an action fails: a sentence for people, and Ward's stable kind for programs.

export type Kind =
  | "invalid_params" | "cancelled" | "conflict" | "outside_workspace" | "not_found" | "already_exists" | "not_a_file"
  | "not_a_directory" | "not_empty" | "changed" | "no_match" | "ambiguous_match" | "too_large" | "bad_encoding"
  | "bad_pattern" | "permission_denied" | "io" | "not_capable" | "denied" | "unknown_action" | "patch_failed";

export class Failure extends Error {
  constructor(readonly kind: Kind, message: string) {
    super(message);
  }
}

/** What an editor acknowledges an action with. */
export type Acknowledgement = { ok: true; result: unknown } | { ok: false; error: string; code: number; kind: Kind };

const CODES: Partial<Record<Kind, number>> = { invalid_params: -32602, cancelled: -32800, changed: -32801 };

export function refused(failure: Failure): Acknowledgement {
  return { ok: false, error: failure.message, code: CODES[failure.kind] ?? -32000, kind: failure.kind };
}

/** Any error as a failure; the editor's own file errors have a code that says what they are. */
export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  const kinds: Record<string, Kind> = {
    FileNotFound: "not_found", ENOENT: "not_found", EntryNotFound: "not_found",
    FileExists: "already_exists", EEXIST: "already_exists", EntryExists: "already_exists",
    FileNotADirectory: "not_a_directory", ENOTDIR: "not_a_directory", EntryNotADirectory: "not_a_directory",
    FileIsADirectory: "not_a_file", EISDIR: "not_a_file", EntryIsADirectory: "not_a_file",
    NoPermissions: "permission_denied", EACCES: "permission_denied", EPERM: "permission_denied",
    FileTooLarge: "too_large", EntryTooLarge: "too_large",
  };
  return new Failure((code !== undefined && kinds[code]) || "io", message || "The editor could not do it and did not say why.");
}
