// Asks something instead of what was asked: in a copy of the session up to there. The session that
// was stays as it is; what its actions did to files stays too.

import { api, newId } from "../api/client";
import type { Said } from "./conversation";
import { feed } from "./feed";
import { go } from "./route";
import { refreshSoon } from "./sessions";

export async function askAgain(said: Said, text: string): Promise<void> {
  const { id, conversation } = feed.get();
  if (id === undefined) return;
  const first = conversation.items.find((item) => item.type === "said") === said;
  if (first) {
    const { role, model, mode, workspace } = conversation;
    const { runtime } = await api.session(id);
    // One that names none runs in the local runtime. Left out, it would be where the host of this page is.
    const begun = await api.begin({ input: text, role, model, mode, workspace, runtime: runtime ?? "local", id: newId() });
    go({ at: "session", id: begun.session_id });
  } else {
    const { session_id } = await api.fork(id, { at: said.seq - 1 });
    await api.say(session_id, { input: text, id: newId() });
    go({ at: "session", id: session_id });
  }
  refreshSoon();
}
