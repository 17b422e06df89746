import type { TestClock as Clock, TestClockRequest } from "./api-types.ts";
import type { Connection, RequestOptions } from "./connection.ts";

/** The clock of a test account: only for keys of test mode. */
export class TestClock {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async read(options?: RequestOptions): Promise<Clock> {
    return await this.#connection.json({ operation: "readTestClock", options });
  }

  /** Moves it forward; a time that has passed changes nothing. */
  async put(clock: TestClockRequest, options?: RequestOptions): Promise<Clock> {
    return await this.#connection.json({ operation: "putTestClock", body: clock, options });
  }
}
