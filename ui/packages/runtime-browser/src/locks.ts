// What one page has, no other page of this browser has at the same time.

/** Lets go of it. */
export type Release = () => void;

/** Takes a name, where nobody has it or lets go of it in time: in so many milliseconds, or until the signal. */
export function claim(name: string, patience: number | AbortSignal = 0): Promise<Release | undefined> {
  if (!navigator.locks) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const signal = typeof patience === "number" ? AbortSignal.timeout(patience) : patience;
    const options: LockOptions = patience === 0 ? { ifAvailable: true } : { signal };
    navigator.locks
      .request(name, options, (lock) => {
        if (!lock) return resolve(undefined);
        return new Promise<void>((release) => resolve(release));
      })
      .catch(() => resolve(undefined));
  });
}
