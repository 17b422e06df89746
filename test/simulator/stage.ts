import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "#db/connection/pool.ts";
import { guardRows, settleRows } from "#db/signing/signed-rows.ts";
import { openEvaluator, type Evaluator } from "#expressions/evaluator.ts";
import { openSigning, readSigningKey, type Signing } from "#lib/signing.ts";
import { blueprint } from "../documents/bench.ts";
import { install } from "../service.ts";
import { fixChance } from "./fixed-chance.ts";
import { openStageDatabase, type StageDatabase } from "./stage-database.ts";
import { TARGET } from "./target.ts";

const HOSTS = `hosts: ['${TARGET}']`;
const ORDER = `request:
    method: POST
    url: "${TARGET}/orders"
    json: { run: "{{ $run.id }}", number: "{{ number }}", token: "{{ $token }}" }`;
const LINES = `- { id: given, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: given, format: json }`;
const out = (from: string): string => `- { id: out, type: output, refKey: out, from: ${from} }`;

/** Writes that can be looked up. */
const SENDS = `${LINES}
- id: sent
  type: http
  for_each: lines
  ${ORDER}
  retry: { attempts: 3 }
  verify: { request: { url: "${TARGET}/orders", query: { token: "{{ $token }}" } }, when: there }
${out("sent")}`;
/** Writes that only the operator can find out about. */
const BLIND = `${LINES}
- id: sent
  type: http
  for_each: lines
  ${ORDER}
${out("sent")}`;
const PACED = `- { id: items, type: http, request: { url: "${TARGET}/paced", query: { run: "{{ $run.id }}" } }, throttle: { requests: 1, per: 2s }, records: items }
${out("items")}`;
const CROWD = `- { id: items, type: http, request: { url: "${TARGET}/crowd", query: { run: "{{ $run.id }}" } }, throttle: { requests: 1, per: 2s }, records: items }
${out("items")}`;
/** Its request ends the process that sends it. */
const POISON = `- { id: items, type: http, request: { url: "${TARGET}/poison", query: { run: "{{ $run.id }}" } }, records: items }
${out("items")}`;
/** Each of its requests is refused some times, and all together more often than a run may try again. */
const STUBBORN = `${LINES}
- id: items
  type: http
  for_each: lines
  request: { url: "${TARGET}/stubborn", query: { run: "{{ $run.id }}", number: "{{ number }}" } }
  retry: { attempts: 20, backoff: fixed, initial: 100ms }
  records: items
${out("items")}`;
const ASKS = `- { id: items, type: http, request: { url: "${TARGET}/asked", query: { run: "{{ $run.id }}" } }, until: { when: "state = 'done'", every: 2s, for: 5m }, records: items }
${out("items")}`;
const GATED = `${LINES}
- { id: gate, type: review, from: lines, timeout: 15s, on_timeout: approve }
- id: sent
  type: http
  for_each: gate
  ${ORDER}
  verify: { request: { url: "${TARGET}/orders", query: { token: "{{ $token }}" } }, when: there }
${out("sent")}`;

/** What can be triggered, by account. */
export const BLUEPRINTS = {
  acme: ["sends", "blind", "paced", "asks", "gated"],
  neighbour: ["sends"],
  /** More runs at once than there are turns for them in their time. */
  crowd: ["crowd"],
  /** Runs that end their process. */
  rogue: ["poison", "stubborn"],
} as const;
export type AccountSlug = keyof typeof BLUEPRINTS;

/** Shorter than the silence of a target that never answers. */
const TIMEOUT = "timeout: 5m";

const DOCUMENTS = [
  "account: acme\nconcurrency: 4",
  "account: neighbour\nconcurrency: 2",
  "account: crowd\nconcurrency: 20",
  "account: rogue\nconcurrency: 2",
  blueprint("sends", SENDS, `${HOSTS}\n${TIMEOUT}`),
  blueprint("blind", BLIND, `${HOSTS}\n${TIMEOUT}`),
  blueprint("paced", PACED, `${HOSTS}\n${TIMEOUT}`),
  blueprint("asks", ASKS, `${HOSTS}\n${TIMEOUT}`),
  blueprint("gated", GATED, `${HOSTS}\n${TIMEOUT}`),
  blueprint("sends", SENDS, `${HOSTS}\n${TIMEOUT}`).replace("account: acme", "account: neighbour"),
  blueprint("crowd", CROWD, `${HOSTS}\ntimeout: 15s`).replace("account: acme", "account: crowd"),
  blueprint("stubborn", STUBBORN, `${HOSTS}\n${TIMEOUT}`).replace("account: acme", "account: rogue"),
  blueprint("poison", POISON, `${HOSTS}\n${TIMEOUT}`).replace("account: acme", "account: rogue"),
];

/** Makes the database note what no change of a run may do: between two looks it could be over. */
async function noteBreaches(db: Database): Promise<void> {
  await db.query(`create table run_breach (run_id text not null, what text not null);
    create function note_breach() returns trigger language plpgsql as $$ begin
      if old.lease_owner <> new.lease_owner then
        insert into run_breach values (new.id, 'was taken from ' || old.lease_owner || ' by ' || new.lease_owner);
      end if;
      if old.ended_at is not null and new.status <> old.status then
        insert into run_breach values (new.id, 'went on after its end: it was ' || old.status || ', and is ' || new.status);
      end if;
      return null;
    end $$;
    create trigger note_breach after update on run for each row execute function note_breach()`);
}

/** An installation that every simulation begins with as it is. One simulation at a time. */
export interface Stage extends AsyncDisposable {
  readonly signing: Signing;
  readonly folder: string;
  readonly database: StageDatabase;
  readonly expressions: Evaluator;
}

export async function openStage(): Promise<Stage> {
  using _chance = fixChance(0, () => 0);
  await using opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "latchkey-simulation-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const installation = opened.use(await install());
  const { db } = installation.database;
  await installation.apply(...DOCUMENTS);
  for (const account of Object.keys(BLUEPRINTS)) await installation.createKey(account);
  await noteBreaches(db);
  const key = readFileSync(join(installation.dataFolder, "signing.key"), "utf8");
  await settleRows(db);
  const signing = openSigning(readSigningKey(key));
  const database = opened.use(await openStageDatabase(installation.database, folder));
  guardRows(database.admin, signing, null);
  const expressions = openEvaluator({ threads: 1 });
  opened.defer(async () => await expressions.close());
  const kept = opened.move();
  return {
    signing,
    folder,
    database,
    expressions,
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}
