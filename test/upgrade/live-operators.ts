import assert from "node:assert/strict";
import { createOperator } from "#actions/operators/manage-operators.ts";
import { limitPassword } from "#db/operators/operators.ts";
import type { OperatorRole } from "#domain/operator.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import type { Caller } from "../caller.ts";
import { signingOf } from "../invariants.ts";
import { openBrowser, type OperatorAnswer } from "../operator/browser.ts";
import type { Installation, RunningService } from "../service.ts";
import {
  readCompleted,
  resultsOf,
  type CompletedRun,
  type Expected,
  type Operator,
  type Use,
} from "./expected.ts";
import { begin, leaveInDoubt, park, reviewOf, ROWS } from "./live-runs.ts";
import type { Northwind } from "./northwind.ts";

interface Office {
  readonly installation: Installation;
  readonly service: RunningService;
  readonly northwind: Northwind;
  readonly acme: Caller;
}

interface Acted {
  readonly left: Pick<Expected, "operators" | "operatorCookie">;
  readonly completed: readonly CompletedRun[];
  readonly purged: readonly string[];
}

/** What those do who run the installation. */
export async function actAsOperators(office: Office, uses: readonly Use[]): Promise<Acted> {
  const { installation, service, acme } = office;
  const [admin, reviewer, viewer] = [
    await newOperator(installation, "admin"),
    await newOperator(installation, "reviewer"),
    await newOperator(installation, "viewer"),
  ];
  const browser = openBrowser(service.url);
  assert.equal((await browser.signIn(admin.email, admin.password)).status, 201);
  const { secret, recoveryCodes } = await browser.enrol(admin.password);
  // Somebody types a wrong password: how often is remembered.
  assert.equal((await openBrowser(service.url).signIn(viewer.email, "a wrong password")).status, 401);
  const act = async (path: string, body?: unknown): Promise<OperatorAnswer> => {
    const answer = await browser.send("POST", path, body);
    assert.ok(answer.status < 300, `${path}: ${answer.text}`);
    return answer;
  };
  const decided = await decide(office, act);
  const [first] = uses;
  const tested = await act(`/credentials/${first?.body.credential_id}/test-login`);
  await untilOver(installation, tested.body.id);
  const again = await act(`/runs/${decided.repeatable}/run-again`, { idempotency_key: "again" });
  await resultsOf(acme, again.body.id);
  const purged = await begin(acme, "report");
  await resultsOf(acme, purged);
  await act(`/runs/${purged}/purge`);
  const completed: CompletedRun[] = [];
  for (const run of [...decided.completed, again.body.id])
    completed.push(await readCompleted(acme, "acme", run));
  return {
    left: {
      operators: [{ ...admin, totpKey: secret, recoveryCodes }, reviewer, viewer],
      operatorCookie: browser.cookie,
    },
    completed,
    purged: [purged],
  };
}

async function newOperator(installation: Installation, role: OperatorRole): Promise<Operator> {
  const { id, email, password } = await createOperator(
    { db: installation.database.db, signing: signingOf(installation), actor: { kind: "cli" } },
    { email: `${role}@northwind.example`, role, accounts: null },
  );
  await limitPassword(installation.database.db, id, null);
  return { email, password, totpKey: null, recoveryCodes: [] };
}

/** Reviews and a write that are decided; gives the runs that went on. */
async function decide(
  { installation, northwind, acme }: Office,
  act: (path: string, body?: unknown) => Promise<OperatorAnswer>,
): Promise<{ readonly completed: readonly string[]; readonly repeatable: string }> {
  const { db } = installation.database;
  const [approved, rejected] = [await park(acme, "approval", ROWS), await park(acme, "approval", ROWS)];
  await act(`/reviews/${await reviewOf(db, approved)}/approve`, {
    edits: [{ ordinal: 1, data: { number: "b", n: 2 } }],
    exclude: [0],
    reason: "It is a credit note.",
  });
  await act(`/reviews/${await reviewOf(db, rejected)}/reject`, { reason: "Not ours." });
  const doubtful = await leaveInDoubt(acme, northwind, "m1");
  await act(`/runs/${doubtful.run}/writes/${doubtful.node}/${doubtful.record}/decide`, { happened: true });
  const repeatable = await begin(acme, "report");
  for (const run of [approved, doubtful.run, repeatable]) await resultsOf(acme, run);
  return { completed: [approved, doubtful.run], repeatable };
}

/** No caller sees a test of a login. */
async function untilOver({ database: { db } }: Installation, run: string): Promise<void> {
  const { status } = await eventually(
    "the test of a login has ended",
    async () => {
      const [row] = await db.query<{ status: string }>(
        "select status from run where id = $1 and ended_at is not null",
        [run],
      );
      return row;
    },
    PATIENCE_MS,
  );
  assert.equal(status, "completed");
}
