// Who an agent is. What is not given comes from the page's address, then from what this browser
// remembers: names only. Whose it is, and what shows that, never comes from there.

/** Who an agent is. */
export interface RuntimeAgentOptions {
  /** Which runtime, in its own words, such as `browser-echo`. */
  runtimeId: string;
  /** What it runs, such as `echo`. */
  runtimeType: string;
  /** The person whose it is. It has to be who authenticated, and is, where it is not given. */
  clientId: string;
  /** The session that it goes on with; after a reload, the one that this tab had. */
  sessionId?: string;
}

const NAMES = { runtimeId: "runtime_id", runtimeType: "runtime_type" } as const;
const USUAL = { runtimeId: "browser-echo", runtimeType: "echo" } as const;

/** An option by its name: as given, from the address, as remembered, as usual. */
export function named(option: keyof typeof NAMES, given: Partial<RuntimeAgentOptions>): string {
  return given[option] ?? new URLSearchParams(location.search).get(NAMES[option]) ?? remembered(NAMES[option]) ?? USUAL[option];
}

function remembered(name: string): string | undefined {
  try {
    return localStorage.getItem(`ward.${name}`) ?? undefined;
  } catch {
    return undefined;
  }
}
