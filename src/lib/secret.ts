import { inspect } from "node:util";

/**
 * A value that can't be printed by accident. All serialisation (string concatenation, JSON,
 * `util.inspect`, a logger) gives `[secret]`; `reveal()` is the only way to the value, so a grep for it finds every use.
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
