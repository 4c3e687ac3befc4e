// One websocket for all that a tab follows. To a host a browser has six connections, for all tabs
// together, and an answer that goes on takes one of them; websockets are not counted.

/** How long it may take to open. */
const PATIENCE = 5000;
/** Ward shows every 15 s that it is there. */
const SILENCE = 40_000;

type Told = { answered: { id: number; status: number } } | { piece: { id: number; data: string } } | { ended: { id: number } };

interface Followed {
  answer: (response: Response) => void;
  refuse: (error: unknown) => void;
  body?: ReadableStreamDefaultController<Uint8Array>;
}

let current: Promise<Line | undefined> | undefined;

/** The tab's websocket; nothing where none can be had, such as for who is not signed in: a plain request is then told why. */
export function line(): Promise<Line | undefined> {
  // A browser whose policy has no words for websockets throws.
  current ??= opened().catch(() => undefined);
  return current;
}

function opened(): Promise<Line | undefined> {
  return new Promise((resolve) => {
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/events`);
    const timer = setTimeout(() => socket.close(), PATIENCE);
    socket.onopen = () => {
      clearTimeout(timer);
      resolve(new Line(socket));
    };
    socket.onclose = () => {
      clearTimeout(timer);
      current = undefined;
      resolve(undefined);
    };
  });
}

const encoder = new TextEncoder();
const lost = () => new TypeError("The connection was lost.");

class Line {
  private readonly followed = new Map<number, Followed>();
  private last = 0;
  private silence: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly socket: WebSocket) {
    socket.onmessage = ({ data }) => {
      this.wait();
      this.hear(JSON.parse(data) as Told);
    };
    socket.onclose = this.end;
    // A socket does not notice by itself that nothing arrives any more.
    addEventListener("offline", this.end);
    this.wait();
  }

  /** What a `GET` of this path would answer, for as long as it goes on. */
  follow(path: string, after: string | null, signal?: AbortSignal | null): Promise<Response> {
    return new Promise((answer, refuse) => {
      signal?.throwIfAborted();
      if (this.socket.readyState !== WebSocket.OPEN) throw lost();
      const id = ++this.last;
      this.followed.set(id, { answer, refuse });
      signal?.addEventListener("abort", () => this.stop(id, signal.reason), { once: true });
      this.say({ follow: { id, path, ...(after !== null && { after: Number(after) }) } });
    });
  }

  private hear(told: Told): void {
    if ("answered" in told) {
      const { id, status } = told.answered;
      const one = this.followed.get(id);
      const start = (body: ReadableStreamDefaultController<Uint8Array>) => void (one && (one.body = body));
      const body = status === 204 ? null : new ReadableStream<Uint8Array>({ start, cancel: () => this.stop(id) });
      one?.answer(new Response(body, { status }));
    } else if ("piece" in told) {
      this.followed.get(told.piece.id)?.body?.enqueue(encoder.encode(told.piece.data));
    } else {
      const { id } = told.ended;
      this.followed.get(id)?.body?.close();
      this.forget(id);
    }
  }

  private stop(id: number, why?: unknown): void {
    const one = this.followed.get(id);
    if (!one) return;
    one.refuse(why);
    if (why !== undefined) one.body?.error(why);
    this.say({ stop: { id } });
    this.forget(id);
  }

  private forget(id: number): void {
    this.followed.delete(id);
    if (this.followed.size === 0) this.end();
  }

  private say(wish: unknown): void {
    this.socket.send(JSON.stringify(wish));
  }

  private wait(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(this.end, SILENCE);
  }

  /** All that is followed is lost, or nothing is: whoever follows next has another socket. */
  private readonly end = () => {
    clearTimeout(this.silence);
    removeEventListener("offline", this.end);
    this.socket.onclose = this.socket.onmessage = null;
    this.socket.close();
    current = undefined;
    for (const { refuse, body } of this.followed.values()) {
      refuse(lost());
      body?.error(lost());
    }
    this.followed.clear();
  };
}
