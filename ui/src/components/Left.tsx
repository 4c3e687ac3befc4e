import { memo, useMemo, useState } from "react";
import { api } from "../api/client";
import type { SessionInfo } from "../api/schema";
import { host } from "../host";
import { complain } from "../model/announce";
import { inbox } from "../model/inbox";
import { type Place, type Route, address, go } from "../model/route";
import { list, refresh } from "../model/sessions";
import { useStore } from "../model/store";
import { ago, baseName, stateWords } from "../text/words";
import { plain } from "../text/visible";
import { Dialog } from "./Dialog";

const NAMES: Record<Place, string> = { approvals: "Approvals", notebooks: "Notebooks", grants: "Grants", ledger: "Ledger", runtimes: "Runtimes", roles: "Roles", settings: "Settings" };

/** Sessions, and the other places of the page. */
export const Left = memo(function Left({ route, close }: { route: Route; close: () => void }) {
  const { sessions, loaded, failure } = useStore(list);
  const { open } = useStore(inbox);
  const [search, setSearch] = useState("");
  const [removes, setRemoves] = useState<SessionInfo>();
  const [renames, setRenames] = useState<string>();
  const found = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return sessions.filter((session) => {
      const text = `${session.title} ${session.role} ${session.model} ${baseName(session.workspace)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }, [sessions, search]);
  const days = useMemo(() => byDay(found), [found]);
  const current = route.at === "session" ? route.id : undefined;
  return (
    <nav className="left" aria-label="Sessions and places" onClick={(event) => (event.target as Element).closest("a") && close()}>
      <a className="new" href="#/" aria-current={route.at === "new" ? "page" : undefined}>+ New session</a>
      {sessions.length > 3 && <input className="search" type="search" aria-label="Search sessions" placeholder="Search sessions" value={search} onChange={(event) => setSearch(event.target.value)} />}
      {days.map(([day, some]) => (
        <section key={day} aria-label={day}>
          <h2>{day}</h2>
          <ul>
            {some.map((session) => (
              <SessionRow key={session.session_id} session={session} current={session.session_id === current} renames={renames === session.session_id}
                rename={(wanted) => setRenames(wanted ? session.session_id : undefined)} remove={() => setRemoves(session)} />
            ))}
          </ul>
        </section>
      ))}
      {loaded && sessions.length === 0 && !failure && <p className="empty">No session yet. Say what shall be done, and one begins.</p>}
      {loaded && sessions.length > 0 && found.length === 0 && <p className="empty">No session has “{search}” in its name, role or model.</p>}
      {failure && <p className="empty bad">{failure}</p>}
      <section aria-label="Places">
        <h2>Places</h2>
        <ul>
          {(Object.keys(NAMES) as Place[]).filter((place) => place !== "notebooks" || host.kind === "browser").map((place) => (
            <li key={place}>
              <a className={route.at === place ? "s on" : "s"} href={address({ at: place })} aria-current={route.at === place ? "page" : undefined}>
                <span className="t"><span>{NAMES[place]}</span>{place === "approvals" && open.length > 0 && <small className="w">{open.length}</small>}</span>
              </a>
            </li>
          ))}
        </ul>
      </section>
      {removes && (
        <Dialog title="Delete this session?" close={() => setRemoves(undefined)}>
          <p>“{plain(removes.title)}” goes, with all that was said in it. What its actions did to files stays, and so does what the ledger has about them.</p>
          <div className="row-of">
            <button type="button" className="b n" onClick={async () => {
              setRemoves(undefined);
              try {
                await api.remove(removes.session_id);
                if (removes.session_id === current) go({ at: "new" });
                await refresh();
              } catch (error) {
                complain(error);
              }
            }}>Delete</button>
            <button type="button" className="b p" autoFocus onClick={() => setRemoves(undefined)}>Keep it</button>
          </div>
        </Dialog>
      )}
    </nav>
  );
});

function SessionRow({ session, current, renames, rename, remove }: { session: SessionInfo; current: boolean; renames: boolean; rename: (wanted: boolean) => void; remove: () => void }) {
  const [title, setTitle] = useState(session.title);
  const state = stateWords[session.state];
  if (renames) {
    const save = async () => {
      rename(false);
      if (!title.trim() || title === session.title) return;
      try {
        await api.change(session.session_id, { title: title.trim() });
        await refresh();
      } catch (error) {
        complain(error);
      }
    };
    return (
      <li>
        <form className="rename" onSubmit={(event) => { event.preventDefault(); void save(); }}>
          <input autoFocus aria-label="New name" value={title} maxLength={200} onFocus={(event) => event.target.select()} onChange={(event) => setTitle(event.target.value)} onBlur={save}
            onKeyDown={(event) => event.key === "Escape" && rename(false)} />
        </form>
      </li>
    );
  }
  return (
    <li className="s-row">
      <a className={current ? "s on" : "s"} href={address({ at: "session", id: session.session_id })} aria-current={current ? "page" : undefined}>
        <span className="t">
          <span className="s-title" dir="auto">{plain(session.title) || "Untitled"}</span>
          <small className={session.state === "waiting" ? "w" : session.state === "failed" ? "bad" : ""}>{state || ago(session.updated_at)}</small>
        </span>
        <small className="s-what">{session.role} · {baseName(session.workspace)}</small>
      </a>
      <span className="s-acts">
        <button type="button" className="icon small" aria-label={`Rename ${plain(session.title)}`} onClick={() => { setTitle(session.title); rename(true); }}>✎</button>
        <button type="button" className="icon small" aria-label={`Delete ${plain(session.title)}`} onClick={remove}>✕</button>
      </span>
    </li>
  );
}

function byDay(sessions: SessionInfo[]): [string, SessionInfo[]][] {
  const today = new Date().setHours(0, 0, 0, 0);
  const name = (at: number) => (at >= today ? "Today" : at >= today - 86_400_000 ? "Yesterday" : "Earlier");
  const days = new Map<string, SessionInfo[]>();
  for (const session of sessions) {
    const day = name(session.updated_at);
    days.set(day, [...(days.get(day) ?? []), session]);
  }
  return [...days];
}
