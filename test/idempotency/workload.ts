import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { openCaller, type ApiAnswer } from "../caller.ts";
import type { Installation } from "../service.ts";

/** One keyed request. The key is also the name of what it makes, so that rows can be counted by it. */
export type Operation =
  | { readonly kind: "session"; readonly key: string }
  | { readonly kind: "trigger"; readonly key: string }
  | { readonly kind: "delete"; readonly key: string; readonly credentialId: string };

/** Two sessions, two triggers and a delete in turn; as many deletes as there are credentials. */
export function planOperations(prefix: string, credentialIds: readonly string[]): readonly Operation[] {
  return credentialIds.flatMap((credentialId, index): Operation[] => [
    { kind: "session", key: `${prefix}-${index}-s1` },
    { kind: "trigger", key: `${prefix}-${index}-t1` },
    { kind: "delete", key: `${prefix}-${index}-d`, credentialId },
    { kind: "session", key: `${prefix}-${index}-s2` },
    { kind: "trigger", key: `${prefix}-${index}-t2` },
  ]);
}

export async function send(serviceUrl: string, apiKey: string, operation: Operation): Promise<ApiAnswer> {
  const caller = openCaller(serviceUrl, apiKey);
  const headers = { "Idempotency-Key": operation.key };
  if (operation.kind === "delete")
    return await caller.delete(`/credentials/${operation.credentialId}`, headers);
  if (operation.kind === "trigger") {
    return await caller.post("/blueprints/plain/trigger", { run_name: operation.key, a: "[]" }, headers);
  }
  return await caller.post(
    "/credential-sessions",
    { strategy_id: "strat_acme", name: operation.key },
    headers,
  );
}

export interface Driven {
  /** The first answer of each key that was no failure. */
  readonly answers: ReadonlyMap<string, ApiAnswer>;
  readonly serverErrors: number;
  readonly lostConnections: number;
  readonly replays: number;
}

export const CLIENTS = 8;
const RETRY_MS = 25;
const PATIENCE_MS = 180_000;
const SUCCESS = { session: 201, trigger: 202, delete: 204 } as const;

/** Eight clients send all operations, each again and again until it has its answer. `url` gives null while the service is away. */
export async function drive(
  operations: readonly Operation[],
  apiKey: string,
  url: () => string | null,
): Promise<Driven> {
  const waiting = [...operations];
  const answers = new Map<string, ApiAnswer>();
  const counts = { serverErrors: 0, lostConnections: 0, replays: 0 };
  const deadline = performance.now() + PATIENCE_MS;
  const attempt = async (operation: Operation): Promise<boolean> => {
    const current = url();
    if (current === null) return false;
    const answer = await send(current, apiKey, operation).catch(() => null);
    if (answer === null) counts.lostConnections++;
    else if (answer.status >= 500) counts.serverErrors++;
    else {
      // A second execution of a DELETE would be a 404 here.
      assert.equal(answer.status, SUCCESS[operation.kind], `${operation.key}: ${answer.text}`);
      if (answer.headers.has("idempotent-replay")) counts.replays++;
      answers.set(operation.key, answer);
      return true;
    }
    return false;
  };
  const client = async (): Promise<void> => {
    for (let operation = waiting.shift(); operation; operation = waiting.shift()) {
      while (!(await attempt(operation))) {
        assert.ok(performance.now() < deadline, `${operation.key} got no answer`);
        await sleep(RETRY_MS);
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return { answers, ...counts };
}

/** Nothing lost, nothing doubled, and every key replays its first answer byte for byte. */
export async function checkLedger(
  installation: Installation,
  operations: readonly Operation[],
  driven: Driven,
  service: { readonly url: string; readonly apiKey: string },
): Promise<void> {
  const { db } = installation.database;
  const made = await db.query<{ id: string; key: string }>(
    `select id, name as key from credential_session where name is not null
     union all select id, convert_from(name, 'UTF8') from run where name is not null`,
  );
  const ids = Map.groupBy(made, (row) => row.key);
  const left = new Set((await db.query<{ id: string }>("select id from credential")).map((row) => row.id));
  assert.equal(driven.answers.size, operations.length);
  for (const operation of operations) {
    const first = driven.answers.get(operation.key);
    assert.ok(first, `${operation.key} was answered`);
    if (operation.kind === "delete") assert.ok(!left.has(operation.credentialId), `${operation.key} is lost`);
    else {
      const rows = (ids.get(operation.key) ?? []).map((row) => row.id);
      assert.deepEqual(rows, [first.body.id], `${operation.key} is there once, as answered`);
    }
    const again = await send(service.url, service.apiKey, operation);
    assert.equal(again.status, first.status);
    assert.equal(again.text, first.text, `${operation.key} replays its bytes`);
    assert.equal(again.headers.get("idempotent-replay"), "true");
  }
}
