import type { WebhookEvent } from "./api-types.ts";
import { sleep, type Connection } from "./connection.ts";
import { LatchkeyError } from "./errors.ts";
import { readEvents } from "./server-events.ts";

const RECONNECT_MS = 1_000;

/** What happens in the account. */
export class Events {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Each event from now on, as a webhook has it, until `signal` is aborted. Reconnects when the connection is cut: an event may then
   * come twice.
   */
  async *watch({ signal }: { readonly signal?: AbortSignal | undefined } = {}): AsyncGenerator<WebhookEvent> {
    for (let lastId = ""; ;) {
      const headers = { Accept: "text/event-stream", ...(lastId !== "" && { "Last-Event-ID": lastId }) };
      const response = await this.#connection.send(
        { operation: "watchEvents", headers, options: { signal } },
        async (opened) => opened,
      );
      if (response.status === 204 || !response.body) return;
      try {
        for await (const { id, data } of readEvents<WebhookEvent>(response.body)) {
          lastId = id;
          yield data;
        }
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof SyntaxError)
          throw new LatchkeyError("The event stream is malformed", { cause: error });
      }
      await sleep(Math.random() * RECONNECT_MS, signal);
    }
  }
}
