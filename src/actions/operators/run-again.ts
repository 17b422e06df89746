import { replayOrRun } from "#actions/replay-or-run.ts";
import { planRerun, runAgain } from "#actions/runs/run-again.ts";
import type { Needs } from "#actions/services.ts";
import type { Database } from "#db/connection/pool.ts";
import { fingerprint } from "#domain/idempotency.ts";
import { actorOf, holderOf, operatorIdOf, requireFactor, type Principal } from "./operator-caller.ts";

/** Throws OperatorError. */
export async function previewRerun(db: Database, reference: string) {
  const { run, version, writes, ignored, obstacle } = await planRerun(db, reference);
  return {
    blueprint_version: version?.version ?? null,
    previous_version: run.blueprintVersion,
    writes: [...writes],
    ignored_keys: [...ignored],
    obstacle,
  };
}

interface AgainBody {
  readonly blueprint_version?: number;
  readonly may_write?: boolean;
  readonly idempotency_key?: string;
}

/** Starts one rerun per idempotency key. Throws Problem, OperatorError. */
export async function rerun(
  services: Needs<"blobs" | "db" | "news" | "signing">,
  caller: Principal,
  reference: string,
  body: AgainBody,
): Promise<{ id: string; run_key: string; blueprint_version: number }> {
  const { writes } = await planRerun(services.db, reference);
  if (writes.length > 0) requireFactor(caller, "lately");
  const wish = { version: body.blueprint_version ?? null, mayWrite: body.may_write ?? false };
  // A version applied in the meantime may write where the previewed one does not.
  const safe = { ...wish, mayWrite: wish.mayWrite && writes.length > 0 };
  const sender = operatorIdOf(caller) ?? holderOf(caller);
  const by = { actor: actorOf(caller), operatorId: operatorIdOf(caller) };
  const answer = await runAgain(services, by, reference, safe, async (accountId, effect) => {
    const request = {
      accountId,
      // Headers can't contain U+0000, so this is never a customer's key.
      key: body.idempotency_key === undefined ? null : `\u0000${sender}/${body.idempotency_key}`,
      fingerprint: () =>
        fingerprint("POST", ["runs", reference, "run-again"], {
          kind: "json",
          canonical: JSON.stringify(wish),
        }),
    };
    const outcome = await replayOrRun(services, request, effect);
    services.news.notifyRunnable([accountId]);
    return outcome.answer;
  });
  return JSON.parse(answer.body) as { id: string; run_key: string; blueprint_version: number };
}
