// What the page in the webview and the extension tell each other.

export type FromPage =
  | { kind: "ready" }
  | { kind: "connect" }
  | { kind: "ask"; id: number; path: string; method: string; headers: Record<string, string>; body?: string }
  | { kind: "stop"; id: number }
  | { kind: "dropped"; uris: string[] };

export type ToPage =
  | { kind: "answered"; id: number; status: number; headers: Record<string, string> }
  | { kind: "piece"; id: number; data: string }
  | { kind: "ended"; id: number }
  | { kind: "failed"; id: number; why: string }
  | { kind: "go"; hash: string }
  | { kind: "add"; text: string };
