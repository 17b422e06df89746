import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliDecompressSync } from "node:zlib";
import type { Answer, Caller } from "./caller.ts";
import { first, other } from "./suite.ts";
import { RIGHT_PASSWORD } from "./target.ts";

const POLL_MS = 40;
const RUN_TIMEOUT_MS = 40_000;

export const PASSWORD_STRATEGY = "strat_conformance_password";

/** Opens the hosted form and submits it as a browser without script would. */
export async function submitHostedForm(
  hostedUrl: string,
  values: Readonly<Record<string, string>>,
): Promise<{ readonly status: number; readonly location: string | null; readonly page: string }> {
  const form = new URLSearchParams({ ...hiddenInputs(await openHostedForm(hostedUrl)), ...values });
  const response = await fetch(hostedUrl, { method: "POST", body: form, redirect: "manual" });
  return { status: response.status, location: response.headers.get("location"), page: await response.text() };
}

/** The form's page; it must be there. */
export async function openHostedForm(hostedUrl: string): Promise<string> {
  const response = await fetch(hostedUrl);
  const page = await response.text();
  assert.equal(response.status, 200, `the hosted form answered ${response.status}`);
  return page;
}

function hiddenInputs(page: string): Record<string, string> {
  const inputs: Record<string, string> = {};
  for (const [input] of page.matchAll(/<input\b[^>]*>/g)) {
    const attribute = (name: string): string => new RegExp(`\\b${name}="([^"]*)"`).exec(input)?.[1] ?? "";
    if (attribute("type") === "hidden") inputs[attribute("name")] = attribute("value");
  }
  return inputs;
}

/** A new session, which must be made. */
export async function createSession(
  caller: Caller,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Answer> {
  const answer = await caller.post("/credential-sessions", { strategy_id: PASSWORD_STRATEGY, ...more });
  assert.ok(answer.status >= 200 && answer.status < 300, answer.text);
  return answer;
}

/** A credential, collected through the hosted form. Gives its id. */
export async function connect(
  strategyId: string,
  values: Readonly<Record<string, string>>,
  caller: Caller = first(),
): Promise<string> {
  const session = await createSession(caller, { strategy_id: strategyId });
  const { status, page } = await submitHostedForm(session.string("hosted_url"), values);
  assert.ok(status < 400, page);
  return (await caller.get(`/credential-sessions/${session.string("id")}`)).string("credential_id");
}

/** A login that the target lets in, with a secret that no other case has. */
export const rightLogin = () => ({
  username: `ada-${randomUUID()}`,
  password: `${RIGHT_PASSWORD}${randomUUID()}`,
});
export const wrongLogin = () => ({ username: `ada-${randomUUID()}`, password: `wrong-${randomUUID()}` });

/** A credential of the ledger for one case alone. */
export const connectLedger = async (login = rightLogin()): Promise<string> =>
  await connect(PASSWORD_STRATEGY, login);

/** A trigger that must be taken. */
export async function trigger(
  blueprintKey: string,
  body: unknown = {},
  caller: Caller = first(),
): Promise<Answer> {
  const answer = await caller.post(`/blueprints/${blueprintKey}/trigger`, body);
  assert.equal(answer.status, 202, answer.text);
  return answer;
}

/** Polls until the run has ended: its last projection, and every `status/progress_step` seen on the way. */
export async function waitForRun(
  run: string,
  caller: Caller = first(),
): Promise<{ readonly last: Answer; readonly seen: readonly string[] }> {
  const seen: string[] = [];
  const deadline = performance.now() + RUN_TIMEOUT_MS;
  for (;;) {
    const last = await caller.get(`/blueprint-runs/${run}/status`);
    assert.equal(last.status, 200, last.text);
    const state = `${last.string("status")}/${last.string("progress_step")}`;
    if (seen.at(-1) !== state) seen.push(state);
    if (last.at("ended_at") !== null) return { last, seen };
    assert.ok(performance.now() < deadline, `the run ${run} did not end in time: ${seen.join(", ")}`);
    await sleep(POLL_MS);
  }
}

/** A run from its trigger to `completed`. Gives its id. */
export async function complete(
  blueprintKey: string,
  body: unknown = {},
  caller: Caller = first(),
): Promise<string> {
  const run = (await trigger(blueprintKey, body, caller)).string("id");
  const { last } = await waitForRun(run, caller);
  assert.equal(last.at("status"), "completed", last.text);
  return run;
}

export async function readResults(
  run: string,
  query = "?deliveryMethod=direct",
  caller = first(),
): Promise<Answer> {
  const answer = await caller.get(`/blueprint-runs/${run}/results${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer;
}

/** The JSON behind a temporary download URL, which needs no key. */
export async function download(
  url: string,
): Promise<{ readonly response: Response; readonly json: unknown }> {
  const response = await fetch(url);
  assert.equal(response.status, 200);
  const bytes = Buffer.from(await response.arrayBuffer());
  return { response, json: JSON.parse(brotliDecompressSync(bytes).toString("utf8")) };
}

/** What is made once and looked at by several cases. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return async () => await (made ??= make());
}

/** A credential of the ledger that every case may use and none may delete. */
export const sharedLedger = once(async () => await connectLedger());

/** A completed run of the ledger Blueprint. Gives its id. */
export const completedRun = once(
  async () => await complete("conformance-ledger", { credential_id: await sharedLedger() }),
);

/** A run that failed at its login. Gives its id. */
export const failedRun = once(async () => {
  const run = await trigger("conformance-ledger", { credential_id: await connectLedger(wrongLogin()) });
  await waitForRun(run.string("id"));
  return run.string("id");
});

/** A credential and a run of the other account. */
export const foreign = once(async () => {
  const caller = other();
  const session = await createSession(caller, { strategy_id: "strat_conformance_other" });
  await submitHostedForm(session.string("hosted_url"), { username: "grace" });
  const credential = (await caller.get(`/credential-sessions/${session.string("id")}`)).string(
    "credential_id",
  );
  const run = await complete("conformance-other", {}, caller);
  const { last } = await waitForRun(run, caller);
  return { session: session.string("id"), credential, run, runKey: last.string("run_key") };
});
