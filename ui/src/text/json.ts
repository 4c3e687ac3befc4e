// Numbers of a notebook's file that JavaScript does not hold either, such as NaN or integers of many
// digits, are strings here: two characters that nobody sees, and the number as it is written.
const HELD = /(?<!\\)"\u2063\u2062(NaN|-?Infinity|-?\d[\d.eE+-]*)"/g;

/** JSON line by line, for people to read, with such numbers as they are written. */
export function readable(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(HELD, "$1");
}
