import { Component, lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { complain, spoken, trouble } from "../model/announce";
import { openAsks } from "../model/conversation";
import { feed, open as show } from "../model/feed";
import { attend, inbox, watchInbox } from "../model/inbox";
import { address, go, route } from "../model/route";
import { list, watchSessions } from "../model/sessions";
import { remember, settings } from "../model/settings";
import { useStore } from "../model/store";
import { learnUndone } from "../model/undo";
import { learn, ward } from "../model/ward";
import { plain } from "../text/visible";
import { Composer } from "./Composer";
import { Conversation } from "./Conversation";
import { Header } from "./Header";
import { Left } from "./Left";
import { Side } from "./Side";
import { Visible } from "./Visible";

const Places = {
  approvals: lazy(() => import("./places").then((m) => ({ default: m.Approvals }))),
  notebooks: lazy(() => import("../notebook/Notebooks").then((m) => ({ default: m.Notebooks }))),
  grants: lazy(() => import("./places").then((m) => ({ default: m.GrantsPlace }))),
  ledger: lazy(() => import("./places").then((m) => ({ default: m.Ledger }))),
  runtimes: lazy(() => import("./places").then((m) => ({ default: m.Runtimes }))),
  roles: lazy(() => import("./places").then((m) => ({ default: m.Roles }))),
  settings: lazy(() => import("./places").then((m) => ({ default: m.SettingsPlace }))),
};

const Notebook = lazy(() => import("../notebook/Notebook").then((m) => ({ default: m.NotebookPlace })));

const narrow = () => matchMedia("(max-width: 1100px)").matches;

export function App() {
  const at = useStore(route);
  const { sessions, signedOut } = useStore(list);
  const known = useStore(ward);
  const { side } = useStore(settings);
  const [drawer, setDrawer] = useState<"left" | "side">();
  const shown = useStore(feed);
  const session = at.at === "session" ? at.id : undefined;

  useEffect(() => {
    void learn();
    const stops = [watchSessions(), watchInbox()];
    return () => stops.forEach((stop) => stop());
  }, []);
  useEffect(() => {
    show(session);
    attend(session);
    // Where the record cannot be read, the button says what is the case when it is pressed.
    if (session) learnUndone(session).catch(() => {});
    setDrawer(undefined);
  }, [session, at.at]);
  useTitle(session);
  useKeys();

  const listed = sessions.find((other) => other.session_id === session);
  const { conversation } = shown;
  const current = session && shown.id === session && conversation.role !== ""
    ? { session_id: session, role: conversation.role, model: conversation.model, mode: conversation.mode, workspace: conversation.workspace }
    : listed;
  const model = current?.model ?? known.models?.default;
  const offline = model === "offline" || model?.startsWith("offline/") === true;
  const toggleSide = () => (narrow() ? setDrawer(drawer === "side" ? undefined : "side") : remember({ side: !side }));
  const Place = at.at === "new" || at.at === "session" ? undefined : at.at === "notebook" ? Notebook : Places[at.at];
  const beside = !Place && side;
  return (
    <div className={`app ${beside ? "with-side" : ""} ${drawer ? `drawer-${drawer}` : ""}`}>
      <a className="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>To the conversation</a>
      <Header session={current} toggleLeft={() => setDrawer(drawer === "left" ? undefined : "left")} toggleSide={toggleSide} leftOpen={drawer === "left"} sideOpen={narrow() ? drawer === "side" : beside} />
      <Left route={at} close={() => setDrawer(undefined)} />
      <main id="main" tabIndex={-1}>
        <Connection />
        {signedOut || known.signedOut ? <SignedOut /> : Place ? (
          <Whole key={address(at)}><Suspense fallback={<div className="place" />}><Place /></Suspense></Whole>
        ) : (
          <>
            <h1 className="sr">{session ? plain(listed?.title ?? conversation.title ?? "Session") : "New session"}</h1>
            {session ? <SessionView session={session} /> : <Welcome offline={offline} />}
            {offline && <p className="offline-line">This is the <b>offline</b> model: plain requests only. For a real one, start Ward with a key (<a href={address({ at: "settings" })}>which?</a>).</p>}
            <Composer session={session} current={current} offline={offline} waits={openAsks(conversation).length > 0} />
          </>
        )}
      </main>
      {(beside || drawer === "side") && !Place && <Side session={session} />}
      {drawer && <button type="button" className="veil" aria-label="Close" onClick={() => setDrawer(undefined)} />}
      <Complaint />
      <p className="sr" role="status" aria-live="polite">{useStore(spoken)}</p>
    </div>
  );
}

function SessionView({ session }: { session: string }) {
  const { id, line, failure, caughtUp, conversation } = useStore(feed);
  if (id === session && line === "refused") {
    return <div className="place"><div className="col"><div className="empty-box"><strong>This session cannot be shown.</strong><p>{failure?.message}</p><p><a href="#/">Begin a new one</a></p></div></div></div>;
  }
  if (id !== session || (!caughtUp && conversation.items.length === 0)) return <div className="talk-box"><div className="talk" aria-busy="true" /></div>;
  return <Conversation />;
}

const EXAMPLES = ["list the files", "read README.md", "write hello.txt: Hello", "run ls -la"];

function Welcome({ offline }: { offline: boolean }) {
  const { health } = useStore(ward);
  return (
    <div className="talk-box">
      <div className="talk welcome">
        <div className="col">
          <h2>What shall be done?</h2>
          <p className="lead">An agent works in {health?.workspace ? <code><Visible text={health.workspace} /></code> : "the workspace"}. It acts behind Ward's wall; what would cross it asks you first, and all of it is written down.</p>
          {offline && (
            <ul className="examples" aria-label="Examples">
              {EXAMPLES.map((example) => (
                <li key={example}><button type="button" className="chip" onClick={() => {
                  const box = document.querySelector<HTMLTextAreaElement>('textarea[aria-label="Message"]');
                  if (!box) return;
                  // As if it were typed, so that it can still be changed.
                  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value")?.set?.call(box, example);
                  box.dispatchEvent(new Event("input", { bubbles: true }));
                  box.focus();
                }}>{example}</button></li>
              ))}
            </ul>
          )}
        </div>
      </div>
    </div>
  );
}

function SignedOut() {
  return (
    <div className="place"><div className="col"><div className="empty-box">
      <strong>This browser is not signed in.</strong>
      <p>Open a link that signs it in. In a terminal: <code>ward tokens link</code></p>
      <button type="button" className="b" onClick={() => location.reload()}>Try again</button>
    </div></div></div>
  );
}

/** A place that fails, or whose code cannot be fetched, takes nothing else of the page along. */
class Whole extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <div className="place"><div className="col"><div className="empty-box" role="alert">
        <strong>This place cannot be shown.</strong>
        <p>Ward did not answer, or it is another Ward than when this page was opened. Nothing is lost.</p>
        <button type="button" className="b" onClick={() => location.reload()}>Load the page again</button>
      </div></div></div>
    );
  }
}

/** Says when Ward does not answer; a moment's loss is not worth a word. */
function Connection() {
  const inboxLine = useStore(inbox).line;
  const { line, id } = useStore(feed);
  const lost = inboxLine === "lost" || (id !== undefined && line === "lost");
  const [said, setSaid] = useState(false);
  useEffect(() => {
    if (!lost) {
      setSaid(false);
      return;
    }
    const timer = setTimeout(() => setSaid(true), 500);
    return () => clearTimeout(timer);
  }, [lost]);
  return <div role="status" className={said ? "lost" : "sr"} data-connection={lost ? "lost" : "open"}>{said ? "Ward does not answer. Trying again… What was said is kept, and nothing is lost." : ""}</div>;
}

function Complaint() {
  const now = useStore(trouble);
  useEffect(() => {
    if (!now) return;
    const timer = setTimeout(() => trouble.get()?.id === now.id && trouble.set(undefined), 12_000);
    return () => clearTimeout(timer);
  }, [now]);
  if (!now) return null;
  return <div className="complaint" role="alert"><span><Visible text={now.text} /></span><button type="button" className="icon small" aria-label="Close" onClick={() => trouble.set(undefined)}>✕</button></div>;
}

function useTitle(session: string | undefined) {
  const { open } = useStore(inbox);
  const { sessions } = useStore(list);
  const title = sessions.find((other) => other.session_id === session)?.title;
  useEffect(() => {
    document.title = `${open.length > 0 ? `(${open.length}) ` : ""}${title ? `${plain(title)} · ` : ""}Ward`;
  }, [open.length, title]);
}

/** Keys that hold everywhere but where somebody writes. */
function useKeys() {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      if (document.querySelector("dialog[open]")) return;
      if (event.key === "/") document.querySelector<HTMLElement>('textarea[aria-label="Message"]')?.focus();
      else if (event.key === "n") go({ at: "new" });
      else if (event.key === "i") go({ at: "approvals" });
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

addEventListener("unhandledrejection", (event) => complain(event.reason));
