// Which paths an action may touch: those that are inside the window's folders after every symbolic
// link has been followed. A path is relative to the folder that the action came for, or absolute.

import * as fs from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { Failure } from "./failure";

/** A path that was checked: it is inside one of the folders. */
export interface Inside {
  /** Where it really is. */
  real: string;
  /** As it is told: relative to the action's folder, absolute in another folder of the window. */
  shown: string;
}

/** Whether links at the path's own end are followed too. */
export type Last = "follow" | "keep";

export function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** Where a path leads: through links as far as it is there, by its words from there on. */
export async function real(path: string, links = 40): Promise<string> {
  const rest: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(await fs.realpath(at), ...rest.reverse());
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT" && code !== "ENOTDIR") throw error;
      // A link that leads nowhere yet is still followed: who writes through it writes there.
      const target = await fs.readlink(at).catch(() => undefined);
      if (target !== undefined) {
        if (links === 0) throw new Failure("outside_workspace", `${path} goes through too many links.`);
        const folder = await fs.realpath(dirname(at));
        return real(join(resolve(folder, target), ...rest.reverse()), links - 1);
      }
      if (dirname(at) === at) return path;
      rest.push(basename(at));
    }
  }
}

/** Checks a path against the folders; the first is the one that the action came for. */
export async function inside(roots: readonly string[], given: string, last: Last = "follow"): Promise<Inside> {
  const base = roots[0];
  if (base === undefined) throw new Failure("outside_workspace", "This window has no folder open.");
  if (given.includes("\0")) throw new Failure("invalid_params", "A path has no NUL in it.");
  const path = resolve(base, given);
  const bases = await Promise.all(roots.map((root) => real(root)));
  const found = last === "follow" || bases.includes(path) ? await real(path) : join(await real(dirname(path)), basename(path));
  if (!bases.some((root) => isInside(root, found))) {
    throw new Failure("outside_workspace", `${given} leads to ${found}, which is outside the folders of this window.`);
  }
  return { real: found, shown: shownFrom(bases[0] ?? base, found) };
}

/** Refuses what leads elsewhere than where it led when it was decided on. */
export function decidedOn(decided: readonly string[] | undefined, given: string, found: string): void {
  if (decided === undefined || decided.includes(found)) return;
  throw new Failure("changed", `${given} leads to ${found}, and that is not what was decided on. Look again; where it is right, ask for ${found} itself.`);
}

export function shownFrom(base: string, path: string): string {
  return isInside(base, path) ? relative(base, path) || "." : path;
}

/** A file of the person's as a conversation calls it: relative to the folder that it acts in where that is known and
 *  the file is there, else absolute. */
export async function named(base: string | undefined, path: string): Promise<string> {
  const found = join(await real(dirname(path)), basename(path));
  return base === undefined ? found : shownFrom(base, found);
}
