// What an action prints, on its way to Ward: numbered from 0 without a gap, gathered for a moment so
// that many small pieces are one message, and no more than fits. And what of it the result keeps.

export interface Piece {
  id: string;
  seq: number;
  stream: "stdout" | "stderr" | "pty" | "dropped";
  data: string;
}

type Stream = "stdout" | "stderr" | "pty";

const GATHER_MS = 40;
const LARGEST = 64 * 1024;
/** What one action may send; what comes then is counted. */
const MOST = 8 * 1024 * 1024;

export class Output {
  #seq = 0;
  #waiting = "";
  #stream: Stream = "pty";
  #sent = 0;
  #dropped = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly id: string, private readonly send: (piece: Piece) => void) {}

  push(stream: Stream, data: string): void {
    if (data === "") return;
    if (stream !== this.#stream) this.flush();
    this.#stream = stream;
    this.#waiting += data;
    if (this.#waiting.length >= LARGEST) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), GATHER_MS);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let rest = this.#waiting;
    this.#waiting = "";
    while (rest !== "") {
      const end = cut(rest, LARGEST);
      const data = rest.slice(0, end);
      rest = rest.slice(end);
      if (this.#sent + data.length > MOST) this.#dropped += Buffer.byteLength(data);
      else {
        this.#sent += data.length;
        this.send({ id: this.id, seq: this.#seq++, stream: this.#stream, data });
      }
    }
  }

  /** Nothing comes any more. */
  end(): void {
    this.flush();
    if (this.#dropped > 0) this.send({ id: this.id, seq: this.#seq++, stream: "dropped", data: String(this.#dropped) });
    this.#dropped = 0;
  }
}

/** Where to cut so that no character is halved. */
function cut(text: string, at: number): number {
  if (text.length <= at) return text.length;
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code < 0xdc00 ? at - 1 : at;
}

/** The head and the tail of what was printed, with a line between that says what was cut. */
export class Kept {
  #head = "";
  #tail = "";
  #cut = 0;

  constructor(private readonly half = 128 * 1024) {}

  push(data: string): void {
    const room = this.half - this.#head.length;
    if (room > 0 && this.#tail === "") {
      const end = cut(data, room);
      this.#head += data.slice(0, end);
      data = data.slice(end);
    }
    this.#tail += data;
    if (this.#tail.length > 2 * this.half) this.#trim();
  }

  #trim(): void {
    const over = this.#tail.length - this.half;
    if (over <= 0) return;
    const end = cut(this.#tail, over);
    this.#cut += Buffer.byteLength(this.#tail.slice(0, end));
    this.#tail = this.#tail.slice(end);
  }

  get cut(): number {
    this.#trim();
    return this.#cut;
  }

  get text(): string {
    const cut = this.cut;
    return cut === 0 ? this.#head + this.#tail : `${this.#head}\n[${cut} bytes were cut here]\n${this.#tail}`;
  }
}

// Escape sequences: operating system commands and other strings to their end, then CSI, then the rest.
// eslint-disable-next-line no-control-regex
const STRINGS = /\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)/g;
// eslint-disable-next-line no-control-regex
const CSI = /\x1b\[[0-?]*[ -/]*[@-~]/g;
// eslint-disable-next-line no-control-regex
const OTHERS = /\x1b[ -/]*[0-~]/g;

/** Takes escape sequences out of what a terminal shows, also where a piece ends within one. */
export class Plain {
  #rest = "";

  push(data: string): string {
    let text = this.#rest + data;
    this.#rest = "";
    text = text.replace(STRINGS, "").replace(CSI, "").replace(/\x1b[ -/]*[0-OQ-WYZ\\`-~]/g, "");
    // What begins a sequence that has not ended waits for the next piece; so does a \r before a \n.
    const open = text.search(/\x1b|\r$/);
    if (open >= 0 && text.length - open < 4096) {
      this.#rest = text.slice(open);
      text = text.slice(0, open);
    }
    return text.replaceAll("\r\n", "\n").replaceAll("\x07", "");
  }

  end(): string {
    const rest = this.#rest.replace(OTHERS, "").replaceAll("\x1b", "");
    this.#rest = "";
    return rest;
  }
}
