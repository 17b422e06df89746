import type { Health } from "./api-types.ts";
import { Connection, type ClientOptions, type RequestOptions } from "./connection.ts";
import { Blueprints } from "./blueprints.ts";
import { Events } from "./events.ts";
import { Runs } from "./runs.ts";
import { Schedules } from "./schedules.ts";
import { TestClock } from "./test-clock.ts";
import { Credentials, CredentialSessions, EmbeddedCredentialSessions } from "./sessions.ts";

export type * from "./api-types.ts";
export type { ClientOptions, RequestOptions, WriteOptions } from "./connection.ts";
export type { TriggerInput, TriggerOptions } from "./blueprints.ts";
export type { OutputRecord } from "./read-records.ts";
export type { WaitOptions } from "./wait.ts";
export * from "./errors.ts";
export * as webhooks from "./webhooks.ts";

/** Latchkey's API, from a backend. The fields of requests and responses are those of the API reference. */
export class Latchkey {
  readonly credentialSessions: CredentialSessions;
  readonly embeddedCredentialSessions: EmbeddedCredentialSessions;
  readonly credentials: Credentials;
  readonly blueprints: Blueprints;
  readonly runs: Runs;
  readonly events: Events;
  readonly schedules: Schedules;
  readonly testClock: TestClock;
  readonly #connection: Connection;

  /** Throws LatchkeyError if an option is invalid; sends nothing. */
  constructor(options: ClientOptions) {
    const connection = new Connection(options);
    this.#connection = connection;
    this.credentialSessions = new CredentialSessions(connection);
    this.embeddedCredentialSessions = new EmbeddedCredentialSessions(connection);
    this.credentials = new Credentials(connection);
    this.blueprints = new Blueprints(connection);
    this.runs = new Runs(connection);
    this.events = new Events(connection);
    this.schedules = new Schedules(connection);
    this.testClock = new TestClock(connection);
  }

  /** Whether the process is running. */
  async readLiveness(options?: RequestOptions): Promise<Health> {
    return await this.#connection.json({ operation: "readLiveness", options });
  }

  /** Whether the service is ready for requests; throws ServerError if not. */
  async readReadiness(options?: RequestOptions): Promise<Health> {
    return await this.#connection.json({ operation: "readReadiness", options });
  }
}
