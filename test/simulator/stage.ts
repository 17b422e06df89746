import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settleRows } from "#db/signing/signed-rows.ts";
import { openSigning, readSigningKey, type Signing } from "#lib/signing.ts";
import { cloneTestDatabase, type TestDatabase } from "../database.ts";
import { blueprint } from "../documents/bench.ts";
import { recordHistory } from "../flow/run-history.ts";
import { install } from "../service.ts";
import { EPOCH_MS, fixChance } from "./fixed-chance.ts";
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
const ASKS = `- { id: items, type: http, request: { url: "${TARGET}/asked", query: { run: "{{ $run.id }}" } }, until: { when: "state = 'done'", every: 5s, for: 5m }, records: items }
${out("items")}`;
const GATED = `${LINES}
- { id: gate, type: review, from: lines, timeout: 40s, on_timeout: approve }
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
} as const;
export type AccountSlug = keyof typeof BLUEPRINTS;

/** Shorter than the silence of a target that never answers. */
const TIMEOUT = "timeout: 5m";

const DOCUMENTS = [
  "account: acme\nconcurrency: 4",
  "account: neighbour\nconcurrency: 2",
  blueprint("sends", SENDS, `${HOSTS}\n${TIMEOUT}`),
  blueprint("blind", BLIND, `${HOSTS}\n${TIMEOUT}`),
  blueprint("paced", PACED, `${HOSTS}\n${TIMEOUT}`),
  blueprint("asks", ASKS, `${HOSTS}\n${TIMEOUT}`),
  blueprint("gated", GATED, `${HOSTS}\n${TIMEOUT}`),
  blueprint("sends", SENDS, `${HOSTS}\n${TIMEOUT}`).replace("account: acme", "account: neighbour"),
];

/** An installation that every simulation begins with a copy of. */
export interface Stage extends AsyncDisposable {
  readonly signing: Signing;
  readonly folder: string;
  clone(): Promise<TestDatabase>;
}

export async function openStage(): Promise<Stage> {
  using _chance = fixChance(0, () => 0);
  await using opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "latchkey-simulation-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const installation = opened.use(await install());
  const { db, connectionString } = installation.database;
  await installation.apply(...DOCUMENTS);
  for (const account of Object.keys(BLUEPRINTS)) await installation.createKey(account);
  await recordHistory(db);
  // Time is a number that no transaction rolls back, and that every statement sees at once.
  await db.query(`create sequence simulated_ms minvalue 0 start 0`);
  await db.query(`create or replace function app_now() returns timestamptz language sql stable
    return to_timestamp((${EPOCH_MS}::float8 + (select last_value from simulated_ms)) / 1000.0)`);
  // What the server does by itself and by its own clock would choose other plans in other runs.
  await db.query(`do $$ declare each text; begin
    for each in select oid::regclass::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
      execute 'alter table ' || each || ' set (autovacuum_enabled = off)';
    end loop; end $$`);
  const key = readFileSync(join(installation.dataFolder, "signing.key"), "utf8");
  await settleRows(db);
  // A template has no connections.
  await db.end();
  const template = new URL(connectionString).pathname.slice(1);
  const kept = opened.move();
  return {
    signing: openSigning(readSigningKey(key)),
    folder,
    clone: async () => await cloneTestDatabase(template),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}
