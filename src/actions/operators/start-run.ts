import { writesOf } from "#actions/runs/blueprint-writes.ts";
import { requireAccount } from "#actions/operator-error.ts";
import type { Needs } from "#actions/services.ts";
import { triggerRun } from "#actions/runs/trigger-run.ts";
import { lookUpDocument } from "#db/config-documents.ts";
import { notFound } from "#domain/problem.ts";
import type { BodyValue } from "#domain/trigger-routing.ts";
import { requireFactor, type OperatorCaller } from "./operator-caller.ts";

/** The values with which an operator tries a Blueprint, all as text. */
export interface TrialRun {
  readonly run_name?: string;
  readonly credential_ids?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly inputs?: Readonly<Record<string, string>>;
}

const textValue = (text: string): BodyValue => ({ kind: "string", text });

/** The equivalent body of a trigger. */
function bodyOf(trial: TrialRun): ReadonlyMap<string, BodyValue> {
  const body = new Map<string, BodyValue>();
  for (const [name, text] of Object.entries(trial.metadata ?? {})) body.set(name, textValue(text));
  for (const [key, text] of Object.entries(trial.inputs ?? {})) body.set(key, textValue(text));
  if (trial.run_name !== undefined) body.set("run_name", textValue(trial.run_name));
  const ids = trial.credential_ids ?? [];
  if (ids.length > 0) body.set("credential_ids", textValue(ids.join(",")));
  return body;
}

/** Starts a run like a trigger, with the same checks, and records the operator. Throws Problem 400, 403, 404, 422, OperatorError. */
export async function startRun(
  services: Needs<"db" | "news">,
  caller: OperatorCaller,
  { account: slug, blueprint }: { readonly account: string; readonly blueprint: string },
  trial: TrialRun,
): Promise<{ id: string; run_key: string }> {
  const account = await requireAccount(services.db, slug);
  const version = await lookUpDocument(services.db, "blueprint", account.id, blueprint);
  if (!version || version.retired) throw notFound("Blueprint");
  if (writesOf(version.blueprint).length > 0) requireFactor(caller, "lately");
  const triggerer = { account, keyId: null, operatorId: caller.operatorId };
  const answer = await services.db.transaction(
    async (tx) => await triggerRun(tx, triggerer, version, bodyOf(trial)),
  );
  services.news.notifyRunnable([account.id]);
  const { id, run_key } = JSON.parse(answer.body) as { id: string; run_key: string };
  return { id, run_key };
}
