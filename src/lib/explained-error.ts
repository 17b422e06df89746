/**
 * An error that people read: its message alone says what is wrong and what to do about it, and holds no secret. Where one ends a command,
 * or the start of the service, nothing else is shown of it.
 */
export class ExplainedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}
