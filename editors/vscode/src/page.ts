// Which files the page consists of: pure.

export interface Page {
  script: string;
  style: string;
  preload: string[];
}

const NAME = /^[\w-]+\.(?:js|css|svg)$/;

export function pageOf(html: string): Page | undefined {
  const all = (pattern: RegExp) => [...html.matchAll(pattern)].map((found) => found[1] ?? "").filter((name) => NAME.test(name));
  const [script] = all(/<script type="module" src="\/assets\/([^"]+)"/g);
  const [style] = all(/<link rel="stylesheet" href="\/assets\/([^"]+)"/g);
  return script && style ? { script, style, preload: all(/<link rel="modulepreload" href="\/assets\/([^"]+)"/g) } : undefined;
}

export function importsOf(script: string): string[] {
  return [...script.matchAll(/["']\.\/([\w-]+\.js)["']/g)].map((found) => found[1] ?? "");
}
