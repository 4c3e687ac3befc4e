import { useState } from "react";
import { api } from "../api/client";
import type { Mode, RoleInfo, SessionInfo } from "../api/schema";
import { complain } from "../model/announce";
import { feed } from "../model/feed";
import { inbox } from "../model/inbox";
import { address } from "../model/route";
import { refreshSoon } from "../model/sessions";
import { isDark, remember, settings } from "../model/settings";
import { useStore } from "../model/store";
import { ward } from "../model/ward";
import { baseName, modeWords, skillWords } from "../text/words";
import { Dialog } from "./Dialog";
import { type Option, Picker } from "./Picker";
import { RunsIn, RuntimePicker } from "./RuntimePicker";
import { Sentence } from "./Visible";

export const USUAL_ROLE = "system_agent";

export function Header({ session, toggleLeft, toggleSide, leftOpen, sideOpen }: {
  session: Pick<SessionInfo, "session_id" | "role" | "model" | "mode" | "workspace"> | undefined;
  toggleLeft: () => void;
  toggleSide: () => void;
  leftOpen: boolean;
  sideOpen: boolean;
}) {
  const { open } = useStore(inbox);
  const { health } = useStore(ward);
  useStore(settings);
  const workspace = session?.workspace ?? health?.workspace;
  return (
    <header className="top">
      <button type="button" className="icon only-narrow" onClick={toggleLeft} aria-label="Sessions and places" aria-expanded={leftOpen}>☰</button>
      <a className="logo" href="#/" aria-label="Ward: new session">
        <svg viewBox="0 0 24 24" aria-hidden="true"><path d="M12 2.5 4 5.5v6c0 5 3.4 8.6 8 10 4.6-1.4 8-5 8-10v-6z" /><path d="M9.5 20v-6a2.5 2.5 0 0 1 5 0v6" /></svg>
        <span>Ward</span>
      </a>
      {workspace && <span className="pill hide-narrow at" title={workspace}><span className="pill-label">workspace</span> <b>{baseName(workspace)}</b></span>}
      <span className="hide-narrow row-of"><Where session={session} /><RoleAndModel session={session} /></span>
      <ModePicker session={session} />
      <span className="grow" />
      {open.length > 0 && <a className="pill inbox" href={address({ at: "approvals" })} data-waiting={open.length}><span>{open.length}<span className="word"> waiting</span></span></a>}
      <button type="button" className="icon hide-narrow" aria-label={isDark() ? "Use the light theme" : "Use the dark theme"} onClick={() => remember({ theme: isDark() ? "light" : "dark" })}>◐</button>
      <button type="button" className="icon" onClick={toggleSide} aria-label="Files, grants and usage" aria-expanded={sideOpen}>☷</button>
    </header>
  );
}

export interface Chosen {
  session_id: string;
  role: string;
  model: string;
  mode: Mode;
}

/** Where actions run: chosen for the next session, told of the one that is shown. */
export function Where({ session }: { session: { session_id: string } | undefined }) {
  const { id, conversation } = useStore(feed);
  if (!session) return <RuntimePicker />;
  return id === session.session_id ? <RunsIn conversation={conversation} /> : null;
}

/** Role, model and mode: of the session that is shown, or of the next one. */
function useChosen(session: Chosen | undefined) {
  const chosen = useStore(settings);
  const { roles, models } = useStore(ward);
  const role = session?.role ?? chosen.role ?? USUAL_ROLE;
  const known = roles?.find((other) => other.name === role);
  const model = session?.model ?? chosen.model ?? known?.model ?? models?.default ?? "offline";
  const mode = session?.mode ?? chosen.mode;
  const change = async (what: { role?: string; model?: string; mode?: Mode }) => {
    if (!session) return remember(what);
    try {
      await api.change(session.session_id, what);
      refreshSoon();
    } catch (error) {
      complain(error);
    }
  };
  return { role, known, model, mode, roles, models, change };
}

export function RoleAndModel({ session }: { session: Chosen | undefined }) {
  const { role, model, roles, models, change } = useChosen(session);
  return (
    <>
      <Picker label="role" value={role} options={roleOptions(roles ?? [], role)} choose={(value) => change({ role: value })} />
      <Picker label="model" value={model} options={modelOptions(models, model)} other="provider/model" choose={(value) => change({ model: value })} />
    </>
  );
}

function ModePicker({ session }: { session: Chosen | undefined }) {
  const { known, mode, change } = useChosen(session);
  const [warns, setWarns] = useState(false);
  const modes: Option[] = (["sandbox", "full"] as const).map((value) => ({
    value, name: modeWords[value].name, what: modeWords[value].what, tone: value === "full" ? "no" : "ok",
    disabled: value === "full" && known?.mode === "sandbox",
  }));
  return (
    <>
      <Picker label="mode" value={mode} className={mode === "full" ? "full" : "sandbox"} options={modes} lead={<i className="dot" aria-hidden="true" />}
        choose={(value) => (value === "full" && mode !== "full" ? setWarns(true) : change({ mode: value as Mode }))} />
      {warns && (
        <Dialog title="Let commands run unconfined?" close={() => setWarns(false)}>
          <p><strong className="bad">In full mode nothing holds a command that is allowed.</strong> It can read your keys, change any file of yours, Ward's own too, and reach every host.</p>
          <p>Skills, rules and the ledger still hold, and what asks still asks. It counts for {session ? "this session, from its next turn" : "the session that you begin now"}.</p>
          <div className="row-of">
            <button type="button" className="b n" onClick={() => { setWarns(false); void change({ mode: "full" }); }}>Use full mode</button>
            <button type="button" className="b p" autoFocus onClick={() => setWarns(false)}>Stay in the sandbox</button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function roleOptions(roles: RoleInfo[], chosen: string): Option[] {
  const options = roles.map((role) => ({
    value: role.name,
    name: role.name,
    disabled: !role.usable,
    what: <RoleWords role={role} />,
  }));
  return options.some((option) => option.value === chosen) ? options : [{ value: chosen, name: chosen, disabled: false, what: <></> }, ...options];
}

export function RoleWords({ role }: { role: RoleInfo }) {
  const may = role.skills.slice(0, 6).map(skillWords);
  return (
    <>
      {role.description && <>{role.description.replace(/[.\s]*$/, "")}. </>}
      {may.length > 0 ? <>May {may.join(", ")}{role.skills.length > may.length ? " and more" : ""}. </> : <>May do nothing by itself. </>}
      {role.mode === "full" ? "Up to full mode. " : ""}
      {!role.usable && <strong className="warned">Not trusted yet: `ward trust` in the workspace does that.</strong>}
    </>
  );
}

function modelOptions(models: { default: string; providers: { provider: string; models: string[]; unusable?: string | null }[] } | undefined, chosen: string): Option[] {
  const options: Option[] = [];
  const add = (option: Option) => {
    if (!options.some((other) => other.value === option.value)) options.push(option);
  };
  if (models) add({ value: models.default, name: models.default, what: models.default === "offline" ? OFFLINE : "Where nobody chooses another." });
  for (const { provider, models: names, unusable } of models?.providers ?? []) {
    const named = names.filter((name) => !name.includes("…"));
    for (const name of named) add({ value: provider === "offline" || name.includes("/") ? name : `${provider}/${name}`, name, disabled: Boolean(unusable), what: unusable ? <Sentence text={unusable} /> : provider === "offline" ? OFFLINE : provider });
    if (named.length === 0) add({ value: `${provider}/`, name: names.join(", ") || provider, disabled: true, what: unusable ? <Sentence text={unusable} /> : `Write a name of ${provider} below.` });
  }
  add({ value: "offline", name: "offline", what: OFFLINE });
  if (!options.some((option) => option.value === chosen)) options.unshift({ value: chosen, name: chosen });
  return options;
}

const OFFLINE = "The small model inside Ward: no key, no network, no reasoning. It follows plain requests.";
