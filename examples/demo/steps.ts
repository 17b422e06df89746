import { CommandFailed, paint, print } from "#cli/output.ts";
import type { RunStatus, TriggerInput } from "../../sdk/typescript/src/latchkey.ts";
import type { Backend } from "./backend.ts";

export const RETURN_URL = "http://localhost:3000/connected?plan=pro";

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
  { latchkey, signal, lastResponse }: Backend,
  request: { readonly strategy: string; readonly name: string; readonly key: string },
  submit: (hostedUrl: string) => Promise<string>,
): Promise<string> {
  const session = await latchkey.credentialSessions.create(
    { strategy_id: request.strategy, name: request.name, return_url: RETURN_URL },
    { idempotencyKey: request.key, signal },
  );
  print(`POST /credential-sessions -> ${lastResponse().status}, status ${session.status}`);
  print(`Hosted form: ${session.hosted_url}`);
  const location = await submit(session.hosted_url ?? "");
  print(`The end user submits the form and is sent to ${location}`);
  const { status, credential_id: id } = await latchkey.credentialSessions.waitFor(session.id, { signal });
  print(`GET /credential-sessions/${session.id} -> ${status}, ${id}`);
  if (id === null) throw new CommandFailed("The session has no credential.");
  return id;
}

export async function trigger(
  { latchkey, signal, lastResponse }: Backend,
  blueprint: string,
  input: TriggerInput,
  idempotencyKey?: string,
): Promise<string> {
  const { id } = await latchkey.blueprints.trigger(blueprint, input, { idempotencyKey, signal });
  print(`POST /blueprints/${blueprint}/trigger -> ${lastResponse().status} ${id}`);
  return id;
}

const isWaiting = ({ progress_step: step }: RunStatus): boolean => step === "awaiting_review";

/** Prints each step of a run until it has ended, or waits for a person. */
export async function follow(backend: Backend, runId: string): Promise<RunStatus> {
  const began = performance.now();
  return await watchUntil(backend, runId, (run) => {
    const seconds = ((performance.now() - began) / 1000).toFixed(2).padStart(6);
    print(`${seconds} s  ${run.status} / ${run.progress_step}`);
    return isWaiting(run);
  });
}

/** Watches a run until one of its states is the wanted one, or it has ended. */
async function watchUntil(
  { latchkey, signal }: Backend,
  runId: string,
  isWanted: (run: RunStatus) => boolean,
): Promise<RunStatus> {
  for await (const run of latchkey.runs.watch(runId, { signal })) if (isWanted(run)) return run;
  return await latchkey.runs.readStatus(runId, { signal });
}

export async function followToEnd(backend: Backend, runId: string): Promise<void> {
  const run = await follow(backend, runId);
  insist(run.status === "completed", `The run ended: ${JSON.stringify(run.error)}`);
}

/** Continues after a person has decided, until the run does not wait any more. */
export async function followDecided(backend: Backend, runId: string): Promise<RunStatus> {
  await watchUntil(backend, runId, (run) => !isWaiting(run));
  return await follow(backend, runId);
}

export async function readResults<Data>(
  { latchkey, signal }: Backend,
  runId: string,
  key: string,
): Promise<ResultSet<Data>> {
  const { results } = await latchkey.runs.readResults(runId, { deliveryMethod: "direct", signal });
  const found = results[key];
  if (found === undefined || typeof found === "string")
    throw new CommandFailed(`There is no result ${key}, but ${Object.keys(results).join(", ")}`);
  return found as ResultSet<Data>;
}

/** Why a record is not valid, in one line. */
export const why = (record: Pick<DemoRecord<unknown>, "errors">): string =>
  record.errors.map((error) => `${error.field ?? "record"}: ${error.message}`).join("; ");
