import { setTimeout as sleep } from "node:timers/promises";
import { CommandFailed, paint, print } from "#cli/output.ts";
import type { Backend, CallOptions } from "./backend.ts";

export const RETURN_URL = "http://localhost:3000/connected?plan=pro";
const POLL_MS = 60;

export interface DemoRecord<Data> {
  readonly data: Data;
  readonly errors: readonly { readonly field: string | null; readonly message: string }[];
  readonly isValid: boolean;
}

export interface ResultSet<Data> {
  readonly totalRecords: number;
  readonly records: readonly DemoRecord<Data>[];
}

export function heading(text: string): void {
  print(paint("bold", `\n${text}`));
}

/** The demo did not work as expected. */
export function insist(isSo: boolean, otherwise: string): void {
  if (!isSo) throw new CommandFailed(otherwise);
}

/** Collects a credential with a hosted session. `submit` acts for the end user and returns the URL to which they are redirected. */
export async function connect(
  backend: Backend,
  request: { readonly strategy: string; readonly name: string; readonly key: string },
  submit: (hostedUrl: string) => Promise<string>,
): Promise<string> {
  const created = await backend.call("POST", "/credential-sessions", {
    body: { strategy_id: request.strategy, name: request.name, return_url: RETURN_URL },
    idempotencyKey: request.key,
  });
  print(`POST /credential-sessions -> ${created.status}, status ${String(created.body["status"])}`);
  print(`Hosted form: ${String(created.body["hosted_url"])}`);
  const location = await submit(String(created.body["hosted_url"]));
  print(`The end user submits the form and is sent to ${location}`);
  const id = String(created.body["id"]);
  let session = await backend.call("GET", `/credential-sessions/${id}`);
  while (session.body["status"] !== "completed") {
    await sleep(POLL_MS);
    session = await backend.call("GET", `/credential-sessions/${id}`);
  }
  print(`GET /credential-sessions/${id} -> completed, ${String(session.body["credential_id"])}`);
  return String(session.body["credential_id"]);
}

export async function trigger(backend: Backend, blueprint: string, request: CallOptions): Promise<string> {
  const path = `/blueprints/${blueprint}/trigger`;
  const answer = await backend.call("POST", path, request);
  print(`POST ${path} -> ${answer.status} ${String(answer.body["id"])}`);
  return String(answer.body["id"]);
}

export interface RunStatus {
  readonly status: string;
  readonly progress_step: string;
  readonly ended_at: string | null;
  readonly error: unknown;
}

/** Prints each step of a run until it has ended, or waits for a person. */
export async function follow(backend: Backend, runId: string): Promise<RunStatus> {
  const began = performance.now();
  let shown = "";
  for (;;) {
    const { body } = await backend.call("GET", `/blueprint-runs/${runId}/status`);
    const run = body as unknown as RunStatus;
    const step = `${run.status} / ${run.progress_step}`;
    if (step !== shown) print(`${((performance.now() - began) / 1000).toFixed(2).padStart(6)} s  ${step}`);
    shown = step;
    if (run.ended_at !== null || run.progress_step === "awaiting_review") return run;
    await sleep(POLL_MS);
  }
}

export async function followToEnd(backend: Backend, runId: string): Promise<void> {
  const run = await follow(backend, runId);
  insist(run.status === "completed", `The run ended: ${JSON.stringify(run.error)}`);
}

/** Continues after a person has decided, until the run does not wait any more. */
export async function followDecided(backend: Backend, runId: string): Promise<RunStatus> {
  let { body } = await backend.call("GET", `/blueprint-runs/${runId}/status`);
  while (body["progress_step"] === "awaiting_review") {
    await sleep(POLL_MS);
    ({ body } = await backend.call("GET", `/blueprint-runs/${runId}/status`));
  }
  return await follow(backend, runId);
}

export async function readResults<Data>(
  backend: Backend,
  runId: string,
  key: string,
): Promise<ResultSet<Data>> {
  const { body } = await backend.call("GET", `/blueprint-runs/${runId}/results?deliveryMethod=direct`);
  const found = (body["results"] as Readonly<Record<string, ResultSet<Data>>>)[key];
  if (found === undefined) throw new CommandFailed(`There is no result ${key}: ${JSON.stringify(body)}`);
  return found;
}

/** Why a record is not valid, in one line. */
export const why = (record: Pick<DemoRecord<unknown>, "errors">): string =>
  record.errors.map((error) => `${error.field ?? "record"}: ${error.message}`).join("; ");
