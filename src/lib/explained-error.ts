/**
 * An error for people: its message explains the problem and the remedy, and contains no secret. When it ends a command or the
 * start of the service, only the message is shown.
 */
export class ExplainedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}
