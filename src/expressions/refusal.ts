/** Marks our own refusals, so that jsonata's errors, which quote data, can't be mistaken for them. */
const REFUSAL = Symbol("refusal");

/** Stops an evaluation with a message that contains no data. */
export function refuse(message: string): never {
  throw Object.assign(new Error(message), { [REFUSAL]: true });
}

export function isRefusal(error: unknown): error is Error {
  return error instanceof Error && REFUSAL in error;
}
