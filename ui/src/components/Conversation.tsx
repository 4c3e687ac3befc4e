import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { type Answer, type Call, type Item, type Said, type Trouble, openAsks } from "../model/conversation";
import { feed, goOn } from "../model/feed";
import { inbox } from "../model/inbox";
import { useStore } from "../model/store";
import { announce, complain } from "../model/announce";
import { askAgain } from "../model/again";
import { Markdown } from "../markdown/Markdown";
import { ActionCard } from "./ActionCard";
import { AskView } from "./Bubble";
import { CopyButton } from "./CopyButton";
import { Visible } from "./Visible";

/** How near to the end counts as at the end. */
const NEAR = 60;

export function Conversation() {
  const shown = useStore(feed);
  const { conversation, pending } = shown;
  const { resolved } = useStore(inbox);
  const scroll = useRef<HTMLDivElement>(null);
  const [behind, setBehind] = useState(false);
  const atEnd = useRef(true);
  const asks = openAsks(conversation).filter(({ ask }) => !resolved.has(ask.approval.id));
  const current = asks[0]?.ask.approval.id;

  // Whatever grows moves the end: words, terminals, folds. It is told once it is laid out, so that
  // nothing has to be laid out twice for a frame.
  useLayoutEffect(() => {
    const box = scroll.current;
    const content = box?.firstElementChild;
    if (!box || !content) return;
    const watch = new ResizeObserver(() => {
      if (atEnd.current) box.scrollTop = box.scrollHeight;
    });
    watch.observe(content);
    watch.observe(box);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    atEnd.current = true;
  }, [shown.id]);
  useEffect(() => {
    if (current) announce("A question waits for your answer. Keys: a allow once, s this session, w always here, d deny.");
  }, [current]);
  const wasRunning = useRef(false);
  useEffect(() => {
    if (wasRunning.current && !conversation.running) announce(conversation.items.at(-1)?.type === "trouble" ? "The session failed." : "The agent has answered.");
    wasRunning.current = conversation.running;
  }, [conversation.running]);

  const look = () => {
    const box = scroll.current;
    if (!box) return;
    atEnd.current = box.scrollTop + box.clientHeight >= box.scrollHeight - NEAR;
    setBehind(!atEnd.current);
  };
  const lastSaid = conversation.items.findLastIndex((item) => item.type === "said");
  return (
    <div className="talk-box">
      <div ref={scroll} className="talk" data-running={conversation.running} onScroll={look} tabIndex={0} role="region" aria-label="Conversation">
        <div className="col">
          {conversation.items.map((item, index) => (
            <ItemView key={item.key} item={item} workspace={conversation.workspace} current={current} lastSaid={index === lastSaid} last={index === conversation.items.length - 1} running={conversation.running} />
          ))}
          {pending.map((sent) => (
            <div key={sent.id} className="me pending"><p className="said-text">{sent.text}</p><small>sending…</small></div>
          ))}
          {conversation.awaits && <Awaited reason={conversation.awaits} />}
          {conversation.running && asks.length === 0 && !conversation.awaits && <Working items={conversation.items} />}
        </div>
      </div>
      {behind && (
        <button type="button" className="to-end" onClick={() => scroll.current?.scrollTo({ top: scroll.current.scrollHeight, behavior: "smooth" })}>
          ↓ To the end
        </button>
      )}
    </div>
  );
}

/** The session can act only where somebody has to connect first. */
function Awaited({ reason }: { reason: string }) {
  useEffect(() => announce(`The session waits for an editor. ${reason}`), [reason]);
  return (
    <div className="awaited">
      <p><span className="pulse" aria-hidden="true" /> <strong>Waiting for an editor to connect</strong></p>
      <p><Visible text={reason} /></p>
      <p className="soft">As soon as it is there, the session goes on by itself. Stop ends the waiting.</p>
    </div>
  );
}

function Working({ items }: { items: Item[] }) {
  const last = items.at(-1);
  const words = last?.type === "call" && !last.output ? "works" : last?.type === "answer" && !last.done ? (last.text ? "answers" : "thinks") : "thinks";
  return <p className="working"><span className="pulse" aria-hidden="true" /> The agent {words}…</p>;
}

interface ItemProps {
  item: Item;
  workspace: string;
  current: string | undefined;
  lastSaid: boolean;
  /** Whether nothing came after it. */
  last: boolean;
  running: boolean;
}

const ItemView = memo(
  function ItemView({ item, workspace, current, lastSaid, last, running }: ItemProps) {
    switch (item.type) {
      case "said":
        return <SaidView said={item} last={lastSaid} running={running} />;
      case "answer":
        return <AnswerView answer={item} />;
      case "call":
        return <CallView call={item} workspace={workspace} current={current} />;
      case "note":
        return <p className={`note ${item.tone}`}>{item.text}</p>;
      case "trouble":
        return <TroubleView trouble={item} last={last} />;
    }
  },
  (before, now) =>
    before.item === now.item && before.workspace === now.workspace && before.lastSaid === now.lastSaid && before.last === now.last && before.running === now.running &&
    (now.item.type !== "call" || now.item.asks.length === 0 || before.current === now.current),
);

function SaidView({ said, last, running }: { said: Said; last: boolean; running: boolean }) {
  const [edit, setEdit] = useState<string>();
  const [under, setUnder] = useState(false);
  const again = async (text: string) => {
    setUnder(true);
    try {
      await askAgain(said, text);
      setEdit(undefined);
    } catch (error) {
      complain(error);
    } finally {
      setUnder(false);
    }
  };
  const who = said.origin.kind === "user" ? undefined : "name" in said.origin ? said.origin.name : said.origin.kind;
  if (edit !== undefined) {
    return (
      <form className="me editing" onSubmit={(event) => { event.preventDefault(); void again(edit); }}>
        <label htmlFor={`edit-${said.key}`}>Ask this instead, in a copy of the session up to here</label>
        <textarea id={`edit-${said.key}`} autoFocus rows={Math.min(12, edit.split("\n").length + 1)} value={edit} onChange={(event) => setEdit(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") setEdit(undefined);
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              if (edit.trim()) void again(edit);
            }
          }} />
        <div className="row-of">
          <button type="submit" className="b p" disabled={under || !edit.trim()}>Ask in a copy</button>
          <button type="button" className="b" onClick={() => setEdit(undefined)}>Leave it</button>
        </div>
      </form>
    );
  }
  return (
    <div className="me-row">
      <article className="me" aria-label={who ? `${who} said` : "You said"}>
        {who && <small className="soft">{who}</small>}
        <p className="said-text">{said.text}</p>
        {said.images > 0 && <small className="soft">{said.images} pictures</small>}
      </article>
      <div className="me-acts">
        <button type="button" className="link quiet" onClick={() => setEdit(said.text)}>edit</button>
        {last && !running && <button type="button" className="link quiet" disabled={under} onClick={() => again(said.text)} title="Asks the same again, in a copy of the session up to here">retry</button>}
        <CopyButton text={() => said.text} what="message" />
      </div>
    </div>
  );
}

function TroubleView({ trouble, last }: { trouble: Trouble; last: boolean }) {
  const [under, setUnder] = useState(false);
  const again = async () => {
    setUnder(true);
    try {
      await goOn();
    } catch (error) {
      complain(error);
    } finally {
      setUnder(false);
    }
  };
  return (
    <div className="trouble" role="alert">
      <p><strong>This did not work.</strong> <Visible text={trouble.failure.error} /></p>
      {last && <button type="button" className="b" disabled={under} onClick={again}>Try again</button>}
    </div>
  );
}

const AnswerView = memo(function AnswerView({ answer }: { answer: Answer }) {
  return (
    <article className="said" aria-label="The agent said" aria-busy={!answer.done}>
      {answer.reasoning && <Reasoning text={answer.reasoning} done={answer.done || answer.text !== ""} />}
      {answer.text && <Markdown text={answer.text} />}
    </article>
  );
});

function Reasoning({ text, done }: { text: string; done: boolean }) {
  return (
    <details className="think">
      <summary>{done ? "Thought" : "Thinks…"}</summary>
      <div className="think-text">{text}</div>
    </details>
  );
}

function CallView({ call, workspace, current }: { call: Call; workspace: string; current: string | undefined }) {
  return (
    <>
      <ActionCard call={call} workspace={workspace} />
      {call.asks.map((ask) => (
        <AskView key={ask.approval.id} approval={ask.approval} child={ask.child} keys={ask.approval.id === current}
          resolved={ask.resolved ?? (call.output ? { approval_id: ask.approval.id, action_id: ask.approval.action_id, resolution: "withdrawn" } : undefined)} />
      ))}
    </>
  );
}
