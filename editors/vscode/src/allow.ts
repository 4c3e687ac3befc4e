// Whether a name is on a list of the person's: pure.

/** `*` at the end of an entry stands for any rest; an entry that is only `*` is none. */
export function allowed(list: readonly string[], name: string): boolean {
  return list.some((entry) => entry === name || (entry.length > 1 && entry.endsWith("*") && name.startsWith(entry.slice(0, -1))));
}
