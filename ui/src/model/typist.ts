// What a person types into a terminal, as actions of their own: in order, each once, and through the
// gate like everything else.

import { api, newId } from "../api/client";
import { Failure, sentence } from "../api/failure";
import type { Mode } from "../api/schema";

export interface Place {
  terminal: string;
  session: string;
  /** A terminal belongs to those who act in the role it was opened in. */
  role: string;
  mode: Mode;
  workspace: string;
}

/** As much is typed at once; a longer text is typed in pieces. */
const PIECE = 4096;

export class Typist {
  private waiting = "";
  private size: { cols: number; rows: number } | undefined;
  private under = false;
  private stopped = false;

  constructor(private place: Place, private refused: (why: string) => void) {}

  type(data: string): void {
    this.waiting += data;
    void this.go();
  }

  resize(cols: number, rows: number): void {
    this.size = { cols, rows };
    void this.go();
  }

  /** One after the other: what is typed meanwhile goes together. */
  private async go(): Promise<void> {
    if (this.under || this.stopped) return;
    this.under = true;
    try {
      while (this.size || this.waiting !== "") {
        const { size } = this;
        if (size) {
          this.size = undefined;
          await this.act("terminal.resize", { ...size });
        } else {
          const data = piece(this.waiting);
          this.waiting = this.waiting.slice(data.length);
          await this.act("terminal.write", { data });
        }
      }
    } catch (error) {
      this.stopped = true;
      this.refused(sentence(error));
    } finally {
      this.under = false;
    }
  }

  private async act(action: "terminal.write" | "terminal.resize", params: Record<string, unknown>): Promise<void> {
    const { terminal, session, role, mode, workspace } = this.place;
    const ended = await api.act({ action, params: { terminal_id: terminal, ...params }, id: newId(), session, role, mode, workspace, runtime: "local", ask: "deny" });
    if ("outcome" in ended && ended.outcome?.status === "failed") throw new Failure(ended.outcome.error, ended.outcome.kind, 0);
  }
}

function piece(text: string): string {
  const last = text.charCodeAt(PIECE - 1);
  // A character of two halves is not cut in two.
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? PIECE - 1 : PIECE);
}

/** How a terminal begins what it says by itself in text of a program's choosing. */
// eslint-disable-next-line no-control-regex
const STRING = /^\u001b[P\]_^X]./s;

/** Whether data may be typed in the person's name. A terminal answers programs by itself, also to
 *  what was printed long ago: that is let through only where the person types, and never as text
 *  that a program chose. */
export function mayType(data: string, focused: boolean): boolean {
  return focused && !STRING.test(data);
}
