// Unified diffs, read for showing. Who wrote one may want to hide a line of it: whatever stands in it
// is shown, as a change, as a file's name or as it is.

export type DiffLine = { kind: "add" | "del" | "same" | "hunk" | "file"; text: string; old?: number; new?: number };

export interface Diff {
  lines: DiffLine[];
  added: number;
  removed: number;
  /** The files it is about, each with its share. */
  files: { path: string; added: number; removed: number }[];
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** `named` where whoever shows the diff of one file says which; then its name is not said again. */
export function readDiff(text: string, named = false): Diff {
  const diff: Diff = { lines: [], added: 0, removed: 0, files: [] };
  const all = text.split("\n");
  if (all.at(-1) === "") all.pop();
  // A hunk is as long as its head says: a line of dashes in it is no head of a file.
  let [before, after, leftOld, leftNew] = [0, 0, 0, 0];
  const file = () => diff.files.at(-1);
  for (let at = 0; at < all.length; at++) {
    const line = all[at] ?? "";
    if (leftOld > 0 || leftNew > 0) {
      if (line.startsWith("+")) {
        diff.added++;
        leftNew--;
        const of = file();
        if (of) of.added++;
        diff.lines.push({ kind: "add", text: line.slice(1), new: after++ });
      } else if (line.startsWith("-")) {
        diff.removed++;
        leftOld--;
        const of = file();
        if (of) of.removed++;
        diff.lines.push({ kind: "del", text: line.slice(1), old: before++ });
      } else if (line.startsWith("\\")) {
        diff.lines.push({ kind: "hunk", text: line });
      } else if (line.startsWith("… ")) {
        // Cut by Ward.
        leftOld = leftNew = 0;
        diff.lines.push({ kind: "hunk", text: line });
      } else {
        leftOld--;
        leftNew--;
        diff.lines.push({ kind: "same", text: line.slice(1), old: before++, new: after++ });
      }
      continue;
    }
    const hunk = HUNK.exec(line);
    const next = all[at + 1] ?? "";
    if (hunk) {
      before = Number(hunk[1]);
      after = Number(hunk[3]);
      leftOld = Number(hunk[2] ?? 1);
      leftNew = Number(hunk[4] ?? 1);
      diff.lines.push({ kind: "hunk", text: line });
    } else if (line.startsWith("--- ") && next.startsWith("+++ ")) {
      const [from, to] = [nameOf(line), nameOf(next)];
      diff.files.push({ path: to ?? from ?? "", added: 0, removed: 0 });
      diff.lines.push({ kind: "file", text: from === undefined ? `${to} (new)` : to === undefined ? `${from} (deleted)` : from === to ? to : `${from} → ${to}` });
      at++;
    } else if (!isNamedBelow(all, at)) {
      diff.lines.push({ kind: line.startsWith("diff --git ") ? "file" : "hunk", text: line });
    }
  }
  if (named && diff.files.length === 1) diff.lines = diff.lines.filter((line) => line.kind !== "file");
  return diff;
}

/** Of a line such as `--- a/src/x.rs`; nothing for what is not there. */
function nameOf(line: string): string | undefined {
  const name = line.slice(4).replace(/\t.*$/, "");
  return name === "/dev/null" ? undefined : name.replace(/^[ab]\//, "");
}

/** What git writes above the two lines that name a file says no more than they do. */
function isNamedBelow(all: string[], at: number): boolean {
  const line = all[at] ?? "";
  const git = /^diff --git a\/(\S+) b\/(\S+)$/.exec(line);
  if (git) {
    const below = all.slice(at + 1, at + 8);
    const head = below.findIndex((other, index) => other.startsWith("--- ") && below[index + 1]?.startsWith("+++ "));
    const names = [nameOf(below[head] ?? ""), nameOf(below[head + 1] ?? "")];
    return head >= 0 && below.slice(0, head).every((other) => !other.startsWith("diff ")) && names.every((name) => name === undefined || name === git[1] || name === git[2]) && git[1] === git[2];
  }
  return /^index [0-9a-f]+\.\.[0-9a-f]+( \d+)?$/.test(line);
}

/** A file that is new, as a diff. */
export function whole(content: string, path = ""): Diff {
  const lines = content.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return {
    lines: lines.map((text, index) => ({ kind: "add", text, new: index + 1 })),
    added: lines.length,
    removed: 0,
    files: [{ path, added: lines.length, removed: 0 }],
  };
}
