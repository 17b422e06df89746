import type {
  RunAccepted,
  TriggerBatchAnswers,
  TriggerBatchRequest,
  TriggerRequest,
  TriggerSchema,
} from "./api-types.ts";
import {
  readJson,
  type Call,
  type Connection,
  type RequestOptions,
  type WriteOptions,
} from "./connection.ts";
import { LatchkeyError } from "./errors.ts";

/** Inputs, metadata and the reserved keys. A value may be a Blob or a File: then the request is multipart/form-data. */
export type TriggerInput = TriggerRequest;

export interface TriggerOptions extends WriteOptions {
  /** Called with the keys of the input that the Blueprint does not know, such as misspelled ones. */
  readonly onIgnoredKeys?: ((keys: readonly string[]) => void) | undefined;
  /** The run may begin after so many seconds (at most 30 days). */
  readonly delaySeconds?: number | undefined;
  /** From -10 to 10: among the account's waiting runs, higher ones begin first. 0 unless given. */
  readonly priority?: number | undefined;
  /** The run fails unless it has begun within so many seconds of the trigger (at most 60 days). */
  readonly expiresInSeconds?: number | undefined;
}

export class Blueprints {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Queues a run. `blueprintKey` is the Blueprint's trigger key. */
  async trigger(
    blueprintKey: string,
    input: TriggerInput = {},
    options: TriggerOptions = {},
  ): Promise<RunAccepted> {
    const { onIgnoredKeys } = options;
    const hasFile = Object.values(input).some((value) => value instanceof Blob);
    const call: Call = {
      operation: "triggerBlueprint",
      parameters: { blueprintKey },
      body: hasFile ? toForm(input) : input,
      headers: headersOf(options),
      options,
    };
    return await this.#connection.send(call, async (response) => {
      const run = await readJson<RunAccepted>(response);
      const ignored = response.headers.get("ignored-keys");
      if (ignored !== null) onIgnoredKeys?.(ignored.split(",").map(readKey));
      return run;
    });
  }

  /**
   * Sends up to 1,000 triggers in one request. Each is answered by itself, in their order: look at the `status` of each. A trigger
   * without an `idempotency_key` is identified by the key of the call and its place.
   */
  async triggerBatch(
    blueprintKey: string,
    batch: TriggerBatchRequest,
    options?: WriteOptions,
  ): Promise<TriggerBatchAnswers> {
    return await this.#connection.json({
      operation: "triggerBlueprintBatch",
      parameters: { blueprintKey },
      body: batch,
      options,
    });
  }

  /** The JSON Schema (2020-12) of the trigger's input. */
  async readSchema(blueprintKey: string, options?: RequestOptions): Promise<TriggerSchema> {
    return await this.#connection.json({
      operation: "readTriggerSchema",
      parameters: { blueprintKey },
      options,
    });
  }
}

function headersOf(options: TriggerOptions): Record<string, string> {
  const { onIgnoredKeys, delaySeconds, priority, expiresInSeconds } = options;
  return {
    ...(onIgnoredKeys && { Prefer: "report-ignored-keys" }),
    ...(delaySeconds !== undefined && { "Latchkey-Delay": String(delaySeconds) }),
    ...(priority !== undefined && { "Latchkey-Priority": String(priority) }),
    ...(expiresInSeconds !== undefined && { "Latchkey-Expires-In": String(expiresInSeconds) }),
  };
}

/** A key is percent-encoded; the empty one is `""`. */
const readKey = (text: string): string => (text.trim() === '""' ? "" : decodeURIComponent(text.trim()));

const CREDENTIALS: ReadonlySet<string> = new Set(["credential_id", "credential_ids"]);

/** The same values as JSON would have (docs/api.md, Triggers): text unchanged, everything else as JSON. */
function toForm(input: TriggerInput): FormData {
  const form = new FormData();
  for (const [key, value] of Object.entries(input)) {
    if (value === undefined || value === null) continue;
    if (value instanceof Blob) form.append(key, value, value instanceof File ? value.name : key);
    else if (typeof value === "string") form.append(key, value);
    else if (CREDENTIALS.has(key) && Array.isArray(value)) form.append(key, value.join(","));
    else form.append(key, toJson(key, value));
  }
  return form;
}

function toJson(key: string, value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new LatchkeyError(`The value of ${key} cannot be sent as JSON`);
  return text;
}
