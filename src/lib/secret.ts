import { inspect } from "node:util";

/**
 * A value that can't be printed by accident. Every serialisation (string concatenation, JSON, `util.inspect`, a logger) produces
 * `[secret]`. Only `reveal()` returns the value, so a grep for it finds every use.
 */
export class Secret<T = string> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  reveal(): T {
    return this.#value;
  }

  toString(): string {
    return "[secret]";
  }

  toJSON(): string {
    return "[secret]";
  }

  [inspect.custom](): string {
    return "[secret]";
  }
}
