// How a command is written for the shell that runs in a terminal: pure.

/** Words that would change the person's own shell, or end it. */
const OWN = new Set([
  "exit", "logout", "exec", "cd", "pushd", "popd", "export", "unset", "set", "shopt", "source", ".", "alias", "unalias",
  "eval", "trap", "umask", "ulimit", "return", "history", "fc", "bind", "builtin", "command", "declare", "typeset", "local", "readonly",
  "read", "wait", "fg", "bg", "jobs", "disown", "hash", "enable", "let", "setopt", "unsetopt", "autoload",
]);

export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function lineOf(argv: readonly string[]): string {
  return argv.map(quoted).join(" ");
}

/** Shells that take a word as [`quoted`] writes it, whatever is in it. */
export function quotes(shell: string): boolean {
  return ["bash", "zsh", "sh", "dash", "ksh"].includes(shell);
}

/** Whether a shell would only read it: a control character is a key that is pressed. */
export function printable(line: string): boolean {
  return !/[\x00-\x09\x0b-\x1f\x7f-\x9f]/.test(line);
}

/** The line as it is typed. It was decided on as `sh -c LINE`: what means the same in every shell is
 *  typed as it is, everything else goes to sh. */
export function typed(line: string): string {
  const first = line.trim().split(/\s/)[0] ?? "";
  const simple = /^[\w@%+:,./ -]+$/.test(line) && !OWN.has(first) && first !== "" && !first.startsWith("-");
  return simple ? line.trim() : `sh -c ${quoted(line)}`;
}
