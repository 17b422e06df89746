import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decideReview, type DecisionOutcome } from "#actions/reviews/decide-review.ts";
import { openPool, type Database } from "#db/connection/pool.ts";
import type { WantedChanges } from "#domain/review.ts";
import { openLog } from "#lib/log.ts";
import { openSigning, readSigningKey } from "#lib/signing.ts";
import { eventually } from "../eventually.ts";
import type { CommandResult, Installation } from "../service.ts";
import { blueprint, openBench, type Bench } from "./bench.ts";

const INPUT = `- { id: given, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: given, format: json }
- { id: checked, type: validate, from: lines, schema: { properties: { n: { type: integer, minimum: 0 } }, required: [n] }, rules: [{ assert: n != 13, field: n, message: Unlucky }] }`;
const OUT = "- { id: out, type: output, refKey: out, from: gate }";
const gate = (keys = "") => `- { id: gate, type: review, from: checked, title: Look${keys} }`;
const CREDENTIAL = "credentials: { it: { strategy: strat_plain } }";

const DOCUMENTS: Readonly<Record<string, string>> = {
  plain: blueprint("plain", `${INPUT}\n${gate(", editable: true")}\n${OUT}`),
  fixed: blueprint("fixed", `${INPUT}\n${gate()}\n${OUT}`),
  asks: blueprint(
    "asks",
    `${INPUT}\n${gate(', when: $counts.invalid > 0, editable: true, instructions: "Of {{ $metadata.order }}"')}\n${OUT}`,
    "metadata: [{ name: order }]",
  ),
  handles: blueprint(
    "handles",
    `${INPUT}\n- { id: gate, type: review, from: checked, when: $inputs.ask = true }\n- { id: ask, type: input, refKey: ask, accepts: json }
- { id: counted, type: map, from: gate, when: $counts.total = 3, fields: { m: n } }
- { id: out, type: output, refKey: out, handles: { valid: { from: gate, where: $isValid }, counted: { from: counted } } }`,
  ),
  mapped: blueprint(
    "mapped",
    `${INPUT}\n- { id: some, type: filter, from: checked, where: $not($exists(drop)) }
- { id: gate, type: review, from: some, editable: true }\n${OUT}`,
  ),
  unchecked: blueprint(
    "unchecked",
    `${INPUT}\n- { id: twice, type: map, from: checked, fields: { n: n } }
- { id: gate, type: review, from: twice, editable: true }\n${OUT}`,
  ),
  two: blueprint(
    "two",
    `${INPUT}\n- { id: first, type: review, from: checked, editable: true }
- id: sent
  type: http
  for_each: first
  request: { method: POST, url: "{TARGET}/orders", json: { n: "{{ n }}", at: "{{ $index }}" } }
- { id: gate, type: review, from: sent, title: Sent }\n${OUT}`,
    "hosts: ['{TARGET}']",
  ),
  fails: blueprint("fails", `${INPUT}\n${gate(", timeout: 1h")}\n${OUT}`),
  approves: blueprint("approves", `${INPUT}\n${gate(", timeout: 1h, on_timeout: approve")}\n${OUT}`),
  short: blueprint("short", `${INPUT}\n${gate()}\n${OUT}`, "timeout: 3s"),
  secret: blueprint(
    "secret",
    `- { id: rows, type: http, credential: it, request: { url: /echo }, records: $ }
- { id: gate, type: review, from: rows, title: "Of {{ $nodes.rows[0].auth }}, {{ $nodes.rows[0].a }}{{ $nodes.rows[0].b }}", instructions: "{{ $nodes.rows[0].a }}{{ $nodes.rows[0].b }}", editable: true }\n${OUT}`,
    CREDENTIAL,
  ),
};
const PLAIN = `strategy: strat_plain
account: acme
hosts: ["{TARGET}"]
fields: [{ key: token, type: password }]
login: { type: bearer, token: token }
concurrency: 1`;

export const ROWS = [{ n: 1 }, { n: -2 }, { n: 13 }];

export interface Parked {
  readonly run: string;
  readonly review: string;
}

/** A bench whose Blueprints have gates, and what a reviewer can do. */
export interface ReviewStage extends AsyncDisposable {
  readonly bench: Bench;
  readonly db: Database;
  /** Triggers, and waits until the run waits for a person. */
  park(key: string, body?: object): Promise<Parked>;
  approve(review: string, changes?: Partial<WantedChanges>): Promise<DecisionOutcome>;
  reject(review: string, by?: string): Promise<DecisionOutcome>;
  /** Runs `work` while the run's row is locked, until so many wait for it. */
  atOnce<T>(run: string, waiters: number, work: () => Promise<T>): Promise<T>;
  /** `latchkey reviews …` */
  latchkey(...words: string[]): Promise<CommandResult>;
}

export const edit = (ordinal: number, data: object) => ({
  at: `edit ${ordinal}`,
  ordinal,
  data: data as { n: number },
});
export const leaveOut = (...ordinals: number[]) => ordinals.map((ordinal) => ({ at: "--exclude", ordinal }));

/** Longer than a command takes to start on a busy machine. */
const PATIENCE_MS = 60_000;

export async function openReviewStage(): Promise<ReviewStage> {
  const bench = await openBench(
    [PLAIN, ...Object.values(DOCUMENTS)],
    "account: acme\nname: Acme\nretention: 1d",
  );
  const { db, connectionString } = bench.installation.database;
  // Of its own: so many wait at once that nobody else would get a connection.
  const reviewers = openPool(
    { connectionString },
    {
      applicationName: "latchkey-test",
      max: 20,
      connectTimeoutMs: PATIENCE_MS,
      lockTimeoutMs: PATIENCE_MS,
      statementTimeoutMs: PATIENCE_MS,
      queryTimeoutMs: PATIENCE_MS,
    },
  );
  const services = { ...decisionServices(bench.installation), db: reviewers };
  return {
    bench,
    db,
    park: async (key, body = { rows: ROWS }) => {
      const { status, text, body: accepted } = await bench.trigger(key, body);
      assert.equal(status, 202, text);
      return { run: accepted.id, review: await waiting(db, accepted.id) };
    },
    approve: async (review, changes = {}) => {
      const decision = { verdict: "approve", changes: { edits: [], exclusions: [], ...changes } } as const;
      return await decideReview(services, review, decision, reviewer("ana", "because"));
    },
    reject: async (review, by = "bob") =>
      await decideReview(services, review, { verdict: "reject" }, reviewer(by, "no")),
    atOnce: async (run, waiters, work) => await atOnce(db, run, waiters, work),
    latchkey: async (...words) => await bench.installation.command("reviews", ...words),
    [Symbol.asyncDispose]: async () => {
      await reviewers.end();
      await bench[Symbol.asyncDispose]();
    },
  };
}

/** What deciding takes, in the test's own process. */
export function decisionServices({ database, dataFolder }: Installation) {
  const signingKey = readFileSync(join(dataFolder, "signing.key"), "utf8");
  return {
    db: database.db,
    log: openLog({ level: "silent", format: "json" }),
    audit: openSigning(readSigningKey(signingKey)).audit,
  };
}

export const reviewer = (by: string, reason: string | null = null) =>
  ({ actor: { kind: "cli" }, by, reason }) as const;

async function waiting(db: Database, run: string): Promise<string> {
  return await eventually("it waits for a person", async () => {
    const [row] = await db.query<{ id: string | null; status: string; detail: string | null }>(
      `select run.status, run.error_detail as detail,
         (select id from review where run_id = run.id and status = 'open') as id from run where id = $1`,
      [run],
    );
    assert.ok(row?.status === "queued" || row?.status === "running", `${row?.status}: ${row?.detail}`);
    return row.id ?? undefined;
  });
}

async function atOnce<T>(db: Database, run: string, waiters: number, work: () => Promise<T>): Promise<T> {
  const { done } = await db.transaction(async (tx) => {
    await tx.query("select 1 from run where id = $1 for update", [run]);
    const started = work();
    const isThere = async () => {
      const [row] = await db.query<{ count: number }>(
        `select count(*)::int as count from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return (row?.count ?? 0) >= waiters ? true : undefined;
    };
    await eventually(`${waiters} wait for the run`, isThere, 30_000);
    return { done: started };
  });
  return await done;
}
