// Unified diffs, read for showing; and one made of two texts, for a file that was written whole.

export type DiffLine = { kind: "add" | "del" | "same" | "hunk" | "file"; text: string; old?: number; new?: number };

export interface Diff {
  lines: DiffLine[];
  added: number;
  removed: number;
}

export function readDiff(text: string): Diff {
  const lines: DiffLine[] = [];
  let added = 0;
  let removed = 0;
  let before = 0;
  let after = 0;
  let inHunk = false;
  const all = text.split("\n");
  if (all.at(-1) === "") all.pop();
  for (const line of all) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      before = Number(hunk[1]);
      after = Number(hunk[2]);
      inHunk = true;
      lines.push({ kind: "hunk", text: line });
    } else if (!inHunk || /^(diff --git|index |--- |\+\+\+ )/.test(line) && !/^(--- |\+\+\+ )$/.test(line) && isHeader(line)) {
      inHunk = false;
      lines.push({ kind: "file", text: line });
    } else if (line.startsWith("+")) {
      added++;
      lines.push({ kind: "add", text: line.slice(1), new: after++ });
    } else if (line.startsWith("-")) {
      removed++;
      lines.push({ kind: "del", text: line.slice(1), old: before++ });
    } else if (line.startsWith("\\")) {
      lines.push({ kind: "hunk", text: line });
    } else {
      lines.push({ kind: "same", text: line.slice(1), old: before++, new: after++ });
    }
  }
  // Where there is one file alone, whoever shows the diff names it.
  const files = lines.filter((line) => line.kind === "file" && line.text.startsWith("+++ ")).length;
  return { lines: files <= 1 ? lines.filter((line) => line.kind !== "file") : lines, added, removed };
}

function isHeader(line: string): boolean {
  return /^(diff --git |index [0-9a-f]+\.\.|--- (a\/|\/|"a\/)|\+\+\+ (b\/|\/|"b\/))/.test(line);
}

/** A file that is new, as a diff. */
export function whole(content: string): Diff {
  const lines = content.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return {
    lines: lines.map((text, index) => ({ kind: "add", text, new: index + 1 })),
    added: lines.length,
    removed: 0,
  };
}
