// How a command is written for the shell that runs in a terminal: pure.

/** Words that shells like sh take for their own. */
const RESERVED = new Set(("if then else elif fi case esac for select while until do done in function time coproc "
  + "foreach end repeat nocorrect noglob declare export float integer local readonly typeset").split(" "));

/** A word for any shell that is like sh: bare only where none reads anything into it. With a `=` in it that is an
 *  option alone, because any other could be an assignment. */
export function quoted(word: string): string {
  const isPlain = /^(?:[\w@+:,./-]+|-[\w-]+=[\w@+:,./-]*)$/.test(word) && !RESERVED.has(word);
  return isPlain ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A word for a shell that [`quotes`], always on one line: VS Code finds the end of a command that is typed
 *  in several lines by the lines that it sees in the terminal, and now and then never does. */
function quotedOnOneLine(word: string): string {
  // Not every shell leaves alone what stands without quotes.
  if (!word.includes("\n")) return `'${word.replaceAll("'", `'\\''`)}'`;
  const escaped = word.replace(/[\\']/g, "\\$&").replaceAll("\n", "\\n");
  // Nor does each leave a `!` alone here.
  return `$'${escaped.replaceAll("!", "\\041")}'`;
}

export function lineOf(argv: readonly string[]): string {
  return argv.map(quoted).join(" ");
}

/** The line that makes of these words one program and its arguments: what a shell has built in under that name
 *  is not what was decided on. Nothing where a shell would take the name for an option. */
export function programOf(argv: readonly string[]): string | undefined {
  return argv[0]?.startsWith("-") ? undefined : `exec ${lineOf(argv)}`;
}

/** Shells that take a word as it is written here, whatever is in it. */
export function quotes(shell: string): boolean {
  return ["bash", "zsh", "ksh"].includes(shell);
}

/** Whether a shell would only read it: a control character is a key that is pressed. */
export function printable(line: string): boolean {
  return !/[\x00-\x09\x0b-\x1f\x7f-\x9f]/.test(line);
}

/** The line as it is typed: it was decided on as `sh -c LINE`, and what the person's shell calls by the same
 *  names (aliases, functions, its own words) is something else. */
export function typed(line: string): string {
  return `sh -c ${quotedOnOneLine(line)}`;
}
