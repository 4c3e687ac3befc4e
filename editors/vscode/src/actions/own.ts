// Ward's own commands, with which a person answers and accepts changes: pure.

/** Whether this would run one of them, as itself or through what it is given. */
export function isOwn(command: string, given: unknown): boolean {
  // That one runs any others, also those that the person did not allow.
  return command === "runCommands" || names(command) || isWithin(given);
}

const names = (text: string) => /^(command:)?ward\./.test(text);

function isWithin(value: unknown): boolean {
  if (typeof value === "string") return names(value);
  return typeof value === "object" && value !== null && Object.values(value).some(isWithin);
}
