// What an edit makes of a text, and how that is told: pure.

import { applyPatch, createTwoFilesPatch, diffLines } from "diff";
import { Failure } from "./failure";

export interface Edit {
  old: string;
  new: string;
  all?: boolean;
}

/** All edits in order, each on the result of the one before; all or none. */
export function applied(text: string, edits: readonly Edit[], path: string): string {
  if (edits.length === 0) throw new Failure("invalid_params", "`edits` of fs.edit is empty. Give at least one {old, new}.");
  // Who writes an edit does not see which line ends the file has. Where it has several kinds, they have to.
  const crlf = endsOf(text) === "crlf";
  const fit = (piece: string) => (crlf && !piece.includes("\r") ? piece.replaceAll("\n", "\r\n") : piece);
  let now = text;
  for (const [index, edit] of edits.entries()) {
    const [old, next] = [fit(edit.old), fit(edit.new)];
    const where = edits.length > 1 ? ` (edit ${index + 1} of ${edits.length})` : "";
    if (old === "") throw new Failure("invalid_params", `\`old\` is empty${where}. Give the text as it stands there; to make a file, use fs.write.`);
    const parts = now.split(old);
    if (parts.length === 1) throw new Failure("no_match", `\`old\` does not occur in ${path}${where}. Read it again: it has to fit to the last blank and line end. Nothing was changed.`);
    if (parts.length > 2 && !edit.all) {
      throw new Failure("ambiguous_match", `\`old\` occurs ${parts.length - 1} times in ${path}${where}. Give more of what is around it, or \`all\`. Nothing was changed.`);
    }
    now = parts.join(next);
  }
  if (now === text) throw new Failure("invalid_params", `The edits leave ${path} as it is.`);
  return now;
}

export type Ends = "none" | "lf" | "crlf" | "mixed";

/** How the lines of a text end. A buffer has one kind of end, and makes one of the others where it is opened. */
export function endsOf(text: string): Ends {
  const kinds = new Set(text.match(/\r\n|\r|\n/g));
  if (kinds.size === 0) return "none";
  return kinds.size > 1 || kinds.has("\r") ? "mixed" : kinds.has("\n") ? "lf" : "crlf";
}

/** A text by its lines, however they end. */
export function lined(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

/** A change of whole lines: those from `start` up to `end` (from 0, `end` not among them) become `text`. */
export interface Hunk {
  start: number;
  end: number;
  text: string;
}

/** The lines that differ, so that all others, and what is marked on them, stay untouched. */
export function hunks(old: string, now: string): Hunk[] {
  const all: Hunk[] = [];
  let line = 0;
  let open: Hunk | undefined;
  for (const { added, removed, value, count } of diffLines(old, now)) {
    if (!added && !removed) {
      open = undefined;
      line += count;
      continue;
    }
    if (!open) all.push((open = { start: line, end: line, text: "" }));
    if (added) open.text += value;
    else open.end = line += count;
  }
  return all;
}

/** As the diff of a file is told. */
export function unified(path: string, old: string, now: string): string {
  const patch = createTwoFilesPatch(`a/${path}`, `b/${path}`, old, now, undefined, undefined, { context: 3 });
  return patch.slice(patch.indexOf("---"));
}

/** A piece of a patch, as Ward has read it: lines begin with what happens to them and keep their ends. */
export interface Piece {
  start: number;
  lines: readonly string[];
}

/** A text with all pieces put in, each at or near the line it names; all or none. */
export function patched(text: string, pieces: readonly Piece[], path: string): string {
  const hunks = pieces.map(({ start, lines }) => {
    const count = (kinds: string) => lines.filter((line) => kinds.includes(line[0] ?? "")).length;
    const told = lines.flatMap((line) => (line.endsWith("\n") ? [line.slice(0, -1)] : [line, "\\ No newline at end of file"]));
    // One that only adds names the line before it.
    const first = count(" -") === 0 ? start + 1 : start;
    return { oldStart: first, oldLines: count(" -"), newStart: first, newLines: count(" +"), lines: told };
  });
  if (hunks.length === 0) return text;
  const names = { oldFileName: path, newFileName: path, oldHeader: undefined, newHeader: undefined };
  const now = applyPatch(text, { ...names, hunks }, { fuzzFactor: 0 });
  if (now === false) throw new Failure("patch_failed", `The patch does not fit ${path}. Read it again and make the patch anew. Nothing was changed.`);
  return now;
}
