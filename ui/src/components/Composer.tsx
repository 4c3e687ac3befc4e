import { type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { api, newId } from "../api/client";
import { Failure } from "../api/failure";
import { host } from "../host";
import { announce, complain } from "../model/announce";
import { feed, say } from "../model/feed";
import { asked, wanted } from "../model/place";
import { go } from "../model/route";
import { refreshSoon } from "../model/sessions";
import { remember, settings } from "../model/settings";
import { useStore } from "../model/store";
import { dollars, tokens, total } from "../text/words";
import { type Chosen, RoleAndModel, Where } from "./Header";

const drafts = new Map(Object.entries(host.drafts ?? {}));

/** Where the person writes. Enter sends, also while the agent works; Ctrl+. stops it. */
export function Composer({ session, current, offline, waits }: { session: string | undefined; current: Chosen | undefined; offline: boolean; waits: boolean }) {
  const key = session ?? "";
  const [text, setText] = useState(() => drafts.get(key) ?? "");
  const [under, setUnder] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const { conversation } = useStore(feed);
  const { running } = conversation;

  useEffect(() => {
    setText(drafts.get(key) ?? "");
    // On a phone the keyboard would cover what was opened.
    if (matchMedia("(min-width: 760px)").matches) box.current?.focus({ preventScroll: true });
  }, [key]);
  useLayoutEffect(() => {
    const area = box.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 240)}px`;
  }, [text]);

  const write = (value: string) => {
    setText(value);
    if (value === "") drafts.delete(key);
    else drafts.set(key, value);
    host.keep?.(Object.fromEntries(drafts));
  };
  const stop = async () => {
    if (!session) return;
    try {
      await api.cancel(session);
      announce("Stopped.");
    } catch (error) {
      complain(error);
    }
  };
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent) => {
      if (event.key === "." && (event.ctrlKey || event.metaKey) && running) {
        event.preventDefault();
        void stop();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  const send = async () => {
    const words = text.trim();
    if (!words || under) return;
    setUnder(true);
    write("");
    try {
      if (session) await say(session, words);
      else {
        const { role, model, mode } = settings.get();
        const begun = await api.begin({ input: words, role, model, mode, ...asked(wanted.get()), id: newId() });
        if (mode === "full") remember({ mode: "sandbox" });
        refreshSoon();
        go({ at: "session", id: begun.session_id });
      }
    } catch (error) {
      const begun = error instanceof Failure && !session ? error.details.session_id : undefined;
      if (typeof begun === "string") return go({ at: "session", id: begun });
      // What was written is not lost.
      write(words);
      complain(error);
    } finally {
      setUnder(false);
      // Who has gone elsewhere meanwhile, in the page or out of it, is not fetched back.
      const at = document.activeElement;
      if (document.hasFocus() && (at === document.body || box.current?.form?.contains(at))) box.current?.focus({ preventScroll: true });
    }
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      void send();
    } else if (event.key === "Escape") box.current?.blur();
  };
  const { usage, cost } = conversation;
  const placeholder = waits ? "Say something while it waits…" : running ? "Say something while it works…" : session ? "Reply…" : offline ? "Try: list the files, then read README.md" : "What shall be done?";
  return (
    <div className="write">
      <form className="col" onSubmit={(event) => { event.preventDefault(); void send(); }}>
        <div className="box">
          <textarea ref={box} rows={1} aria-label="Message" placeholder={placeholder} value={text} onChange={(event) => write(event.target.value)} onKeyDown={press} />
          {session && running && <button type="button" className="stop" onClick={stop} aria-keyshortcuts="Control+."><span aria-hidden="true">■ </span>Stop</button>}
          {(!running || text.trim() !== "") && <button type="submit" className="send" disabled={!text.trim() || under}>Send</button>}
        </div>
        <div className="hint">
          <span className="only-narrow-row"><Where session={current} /><RoleAndModel session={current} /></span>
          {waits ? <span className="hide-narrow"><kbd>esc</kbd> then <kbd>a</kbd><kbd>s</kbd><kbd>w</kbd><kbd>d</kbd> answer</span> : <span className="hide-narrow"><kbd>enter</kbd> send</span>}<span className="hide-narrow"><kbd>shift enter</kbd> new line</span>{running && <span className="hide-narrow"><kbd>ctrl .</kbd> stop</span>}
          <span className="grow" />
          {session && usage && <span className="numbers">{tokens(total(usage))} tokens{cost !== undefined && ` · ${dollars(cost)}`}</span>}
        </div>
      </form>
    </div>
  );
}
