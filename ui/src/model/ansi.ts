// What commands print, as lines with colours. Only colours are taken from it: whatever else a
// terminal would obey (moving about, titles, links) is left out.

export interface Style {
  fg?: string | number;
  bg?: string | number;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  strike?: boolean;
  inverse?: boolean;
}

export interface Run {
  text: string;
  style: Style;
}

const PLAIN: Style = Object.freeze({});
// CSI, OSC (to BEL or ST), other strings, and two-letter escapes.
// eslint-disable-next-line no-control-regex
const ESCAPE = /\u001b\[([0-9;:?<=>]*)([ -/]*)([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[PX^_][^\u001b]*(?:\u001b\\)?|\u001b[ -/]*[0-~]|\u001b/g;

/** Lines as they come, each with the style it begins with. */
export class Lines {
  private texts: string[] = [""];
  private styles: Style[] = [PLAIN];
  private style: Style = PLAIN;
  /** An escape that is not complete yet. */
  private open = "";
  /** How many lines there are; the last one may still grow. */
  get count(): number {
    return this.texts.length > 1 && this.texts.at(-1) === "" ? this.texts.length - 1 : this.texts.length;
  }

  get empty(): boolean {
    return this.texts.length === 1 && this.texts[0] === "";
  }

  push(text: string): void {
    let rest = this.open + text;
    this.open = "";
    // eslint-disable-next-line no-control-regex
    const cut = /\u001b(?:\[[0-9;:?]*|\][^\u0007\u001b]{0,4096})?$/.exec(rest);
    if (cut) {
      this.open = cut[0];
      rest = rest.slice(0, cut.index);
    }
    const lines = rest.split("\n");
    lines.forEach((line, index) => {
      const last = this.texts.length - 1;
      const whole = this.texts[last] + line;
      // A carriage return starts the line anew; the last writing stands.
      const back = whole.replace(/\r+$/, "").lastIndexOf("\r");
      this.texts[last] = back >= 0 ? whole.slice(back + 1) : whole;
      if (line.includes("\u001b[")) this.style = after(this.style, line);
      if (index < lines.length - 1) {
        this.texts[last] = (this.texts[last] ?? "").replace(/\r+$/, "");
        this.texts.push("");
        this.styles.push(this.style);
      }
    });
  }

  runs(index: number): Run[] {
    return read(this.texts[index] ?? "", this.styles[index] ?? PLAIN);
  }

  /** Everything, without colours. */
  text(): string {
    return this.texts.join("\n").replace(ESCAPE, "");
  }

  /** The widest line so far, roughly. */
  tail(count: number): string {
    return this.texts.slice(-count).join("\n").replace(ESCAPE, "");
  }
}

function read(text: string, start: Style): Run[] {
  const runs: Run[] = [];
  let style = start;
  let at = 0;
  for (const match of text.matchAll(ESCAPE)) {
    if (match.index > at) runs.push({ text: text.slice(at, match.index), style });
    if (match[3] === "m") style = sgr(style, match[1] ?? "");
    at = match.index + match[0].length;
  }
  if (at < text.length) runs.push({ text: text.slice(at), style });
  return runs;
}

function after(style: Style, text: string): Style {
  for (const match of text.matchAll(ESCAPE)) {
    if (match[3] === "m") style = sgr(style, match[1] ?? "");
  }
  return style;
}

function sgr(before: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
  let style: Style = { ...before };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code === 0) style = {};
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 9) style.strike = true;
    else if (code === 22) style.bold = style.dim = false;
    else if (code === 23) style.italic = false;
    else if (code === 24) style.underline = false;
    else if (code === 27) style.inverse = false;
    else if (code === 29) style.strike = false;
    else if (code >= 30 && code <= 37) style.fg = code - 30;
    else if (code >= 90 && code <= 97) style.fg = code - 82;
    else if (code >= 40 && code <= 47) style.bg = code - 40;
    else if (code >= 100 && code <= 107) style.bg = code - 92;
    else if (code === 39) style.fg = undefined;
    else if (code === 49) style.bg = undefined;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(i + 1));
      if (code === 38) style.fg = colour;
      else style.bg = colour;
      i += used;
    }
  }
  return style;
}

function extended(codes: number[]): [string | number | undefined, number] {
  if (codes[0] === 2) return [`rgb(${byte(codes[1])} ${byte(codes[2])} ${byte(codes[3])})`, 4];
  if (codes[0] !== 5) return [undefined, 0];
  const index = byte(codes[1]);
  if (index < 16) return [index, 2];
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return [`rgb(${grey} ${grey} ${grey})`, 2];
  }
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40);
  const cube = index - 16;
  return [`rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`, 2];
}

function byte(value: number | undefined): number {
  return Math.max(0, Math.min(255, Math.trunc(value ?? 0) || 0));
}
