// A file that was checked by its path, read later: what the path leads to by then may be another one.

import { closeSync, constants, fstatSync, openSync, readFileSync, readlinkSync, realpathSync } from "node:fs";

/** The text of the file that is really at this path, without a link on the way; nothing where there is none, or
 *  one that is larger. It is the open file that is looked at and read, so nobody can put another between. */
export function heldText(checked: string, most: number): string | undefined {
  let file: number | undefined;
  try {
    // A pipe that was put there would be waited for.
    file = openSync(checked, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const about = fstatSync(file);
    if (!about.isFile() || about.size > most || whereIs(file, checked) !== checked) return undefined;
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** Where an open file is; by its name where the system does not say. */
function whereIs(file: number, name: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${file}`);
  } catch {
    return realpathSync(name);
  }
}
