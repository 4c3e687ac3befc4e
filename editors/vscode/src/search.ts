// Lines that fit a pattern, as fs.search tells them: pure. Patterns are ripgrep's; of its syntax what
// JavaScript writes otherwise is translated.

export interface Match {
  path: string;
  line: number;
  column: number;
  text: string;
  before?: string[];
  after?: string[];
}

const LONGEST = 1000;

export function matcher(pattern: string, context: number): (path: string, text: string) => Generator<Match> {
  const expression = translated(pattern);
  return function* (path, text) {
    // What has a NUL in its beginning is no text.
    if (text.slice(0, 8192).includes("\0")) return;
    const lines = text.split(/\r?\n/);
    if (lines.at(-1) === "") lines.pop();
    for (const [index, line] of lines.entries()) {
      const fit = expression.exec(line);
      if (!fit) continue;
      const before = lines.slice(Math.max(0, index - context), index).map(cut);
      const after = lines.slice(index + 1, index + 1 + context).map(cut);
      const column = [...line.slice(0, fit.index)].length + 1;
      yield { path, line: index + 1, column, text: cut(line), ...(before.length > 0 && { before }), ...(after.length > 0 && { after }) };
    }
  };
}

function translated(pattern: string): RegExp {
  let flags = "u";
  const leading = /^\(\?([imsux]+)\)/.exec(pattern);
  if (leading?.[1]?.includes("i")) flags += "i";
  const rest = (leading ? pattern.slice(leading[0].length) : pattern).replaceAll("(?P<", "(?<").replaceAll(/\\[Az]/g, (end) => (end === "\\A" ? "^" : "$"));
  try {
    return new RegExp(rest, flags);
  } catch (error) {
    // Outside Unicode mode a needless escape is none.
    try {
      return new RegExp(rest, flags.replace("u", ""));
    } catch {
      throw error;
    }
  }
}

function cut(line: string): string {
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
