import { memo, useEffect, useMemo, useState } from "react";
import { api } from "../api/client";
import { announce, complain } from "../model/announce";
import { type ChangedFile, changedFiles, kept, learnKept } from "../model/changes";
import { feed } from "../model/feed";
import { useStore } from "../model/store";
import { undo, undone } from "../model/undo";
import { grants, runtimes, ward } from "../model/ward";
import { clock, count, dollars, runtimeName, tokens, total } from "../text/words";
import { plain } from "../text/visible";
import { Dialog } from "./Dialog";
import { FileDialog, Files, WhatChanged } from "./Files";
import { Visible } from "./Visible";

/** Beside the conversation: what changed, the workspace's files, grants, usage, the runtime. */
export const Side = memo(function Side({ session }: { session: string | undefined }) {
  const { conversation } = useStore(feed);
  const gone = useStore(undone);
  const known = useStore(kept);
  const files = useMemo(() => (session ? changedFiles(conversation, gone, known) : []), [session, conversation.items, gone, known]);
  useEffect(() => {
    for (const file of files) file.calls.forEach(learnKept);
  }, [files]);
  return (
    <aside className="side" aria-label="Files, grants and usage">
      {session && <Changed session={session} files={files} />}
      <Files session={session} changed={files} />
      <Grants session={session} />
      {session && <UsageView />}
      <Runtime />
    </aside>
  );
});

function Changed({ session, files }: { session: string; files: ChangedFile[] }) {
  const [all, setAll] = useState(false);
  const [file, setFile] = useState<string>();
  const workspace = useStore(feed).conversation.workspace;
  const take = async () => {
    setAll(false);
    try {
      announce(`${count(await undo({ session }), "change")} undone.`);
    } catch (error) {
      complain(error);
    }
  };
  return (
    <section aria-label="Changed in this session">
      <h2>Changed in this session</h2>
      {files.length === 0 && <p className="empty">No file yet.</p>}
      <ul>
        {files.map((file) => (
          <li key={file.path} className="row">
            <button type="button" className="file mono-ish" title={plain(file.path)} onClick={() => setFile(file.path)}><Visible text={file.path} /></button>
            <span><WhatChanged file={file} /></span>
          </li>
        ))}
      </ul>
      {files.length > 0 && <button type="button" className="link pad" onClick={() => setAll(true)}>Undo all…</button>}
      {file !== undefined && <FileDialog path={file} workspace={workspace} changed={files.find((other) => other.path === file)} close={() => setFile(undefined)} />}
      {all && (
        <Dialog title="Undo everything?" close={() => setAll(false)}>
          <p>Every file that this session's file actions changed is put back as it was, the newest change first. What commands changed is not undone.</p>
          <div className="row-of">
            <button type="button" className="b n" onClick={take}>Undo {count(files.length, "file")}</button>
            <button type="button" className="b p" autoFocus onClick={() => setAll(false)}>Leave them</button>
          </div>
        </Dialog>
      )}
    </section>
  );
}

function Grants({ session }: { session: string | undefined }) {
  const { value } = grants.use();
  const { conversation } = useStore(feed);
  const { health } = useStore(ward);
  const answered = conversation.items.reduce((sum, item) => sum + (item.type === "call" ? item.asks.filter((ask) => ask.resolved).length : 0), 0);
  useEffect(() => void grants.refresh(), [answered]);
  const workspace = conversation.workspace || health?.workspace;
  const here = (value ?? []).filter((grant) => grant.workspace === workspace && (!grant.session_id || grant.session_id === session));
  return (
    <section aria-label="Grants">
      <h2>Grants</h2>
      {here.length === 0 && <p className="empty">None. Answer a question for longer, and it stands here.</p>}
      <ul>
        {here.map((grant) => (
          <li key={grant.id} className="grant">
            <code><Visible text={grant.pattern} strict /></code>
            <small>
              <span>{grant.role} · {grant.session_id ? "this session" : grant.expires_at ? `until ${clock(grant.expires_at)}` : "this workspace"}</span>
              <button type="button" className="link quiet" aria-label={`Revoke ${grant.pattern}`} onClick={() => revoke(grant.id)}>revoke</button>
            </small>
          </li>
        ))}
      </ul>
    </section>
  );
}

export async function revoke(id: string): Promise<void> {
  try {
    await api.revoke(id);
    announce("Revoked.");
  } catch (error) {
    complain(error);
  }
  await grants.refresh();
}

function UsageView() {
  const { conversation } = useStore(feed);
  const { usage, cost, turns } = conversation;
  return (
    <section aria-label="Usage">
      <h2>Usage</h2>
      <div className="row"><span>Turns</span><span>{turns}</span></div>
      <div className="row"><span>Tokens</span><span>{usage ? tokens(total(usage)) : "0"}</span></div>
      {usage && <div className="row small-print"><span>in · cached · out</span><span>{tokens(usage.input + usage.cache_write)} · {tokens(usage.cache_read)} · {tokens(usage.output)}</span></div>}
      <div className="row"><span>Cost</span><span>{cost !== undefined ? dollars(cost) : conversation.model.startsWith("offline") ? "nothing" : "not known"}</span></div>
    </section>
  );
}

function Runtime() {
  const { health } = useStore(ward);
  const { value } = runtimes.use();
  const sandbox = health?.sandbox;
  const missing = sandbox?.layers.filter((layer) => !layer.available).length ?? 0;
  return (
    <section aria-label="Runtime">
      <h2>Runtime</h2>
      {sandbox && <div className="row"><span>Local, {sandbox.tier}</span><span className={missing === 0 ? "plus" : "warned"}>{missing === 0 ? "all layers" : `${count(missing, "layer")} missing`}</span></div>}
      {(value ?? []).filter((runtime) => runtime.kind !== "local" || runtime.state !== "ready").map((runtime, index) => (
        <div key={index} className="row"><span className="ellipsis">{runtimeName(runtime.kind)}{runtime.workspace_name && `, ${runtime.workspace_name}`}</span><span>{runtime.state}{runtime.restarts > 0 && `, ${count(runtime.restarts, "restart")}`}</span></div>
      ))}
    </section>
  );
}


