// What one page has, no other page of this browser has at the same time.

/** Lets go of it. */
export type Release = () => void;

/** Takes a name, where nobody has it or lets go of it in time. */
export function claim(name: string, patience = 0): Promise<Release | undefined> {
  if (!navigator.locks) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const options: LockOptions = patience > 0 ? { signal: AbortSignal.timeout(patience) } : { ifAvailable: true };
    navigator.locks
      .request(name, options, (lock) => {
        if (!lock) return resolve(undefined);
        return new Promise<void>((release) => resolve(release));
      })
      .catch(() => resolve(undefined));
  });
}
