import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkSigningKey } from "#actions/keys/check-signing-key.ts";
import { migrateJobs } from "#db/runs/jobs.ts";
import { migrate } from "#db/connection/migrate.ts";
import type { Database } from "#db/connection/pool.ts";
import { moveClock } from "../clock.ts";
import { dumpSchema } from "../../scripts/generate/schema-dump.ts";
import { openLog } from "#lib/log.ts";
import { startService } from "#service/assemble.ts";
import { readConfig } from "#service/settings/settings.ts";
import { openCaller, type Caller } from "../caller.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { signingOf } from "../invariants.ts";
import type { Expected, KeyName } from "./expected.ts";
import { empty, MIGRATIONS, thaw } from "./frozen-database.ts";
import { openNorthwind, type Northwind } from "./northwind.ts";

/** An installation of an earlier day, upgraded to this program and served by it. */
export interface Thawed extends AsyncDisposable {
  /** Of the fixture. */
  readonly folder: string;
  readonly expected: Expected;
  readonly database: TestDatabase;
  readonly db: Database;
  readonly dataFolder: string;
  readonly northwind: Northwind;
  /** Of the service. */
  readonly url: string;
  readonly callers: Readonly<Record<KeyName, Caller>>;
  /** How far the installation's clock is behind the real one, in time steps of one-time codes. */
  readonly stepsBehind: number;
  /** Of a fresh installation, and of this one. */
  readonly schemas: { readonly fresh: string; readonly upgraded: string };
  /** Before the upgrade: the ids of its credentials, and where its runs stood. */
  readonly credentials: readonly string[];
  readonly states: ReadonlyMap<string, string>;
}

export async function openThawed(folder: string): Promise<Thawed> {
  await using opened = new AsyncDisposableStack();
  const expected = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8")) as Expected;
  const ageMs = Date.now() - beginning(expected.at);
  const dataFolder = opened.adopt(copyData(folder), (path) => rmSync(path, { recursive: true, force: true }));
  const database = opened.adopt(await createTestDatabase(), async ({ drop }) => await drop());
  const { db } = database;
  await moveClock(db, `${-ageMs} milliseconds`);
  const fresh = await dumpSchema(db);
  await empty(db);
  await thaw(db, folder);
  // From here on time goes on where it stood still; a migration may have set the clock again.
  await moveClock(db, `${-ageMs} milliseconds`);
  const credentials = await db.query<{ id: string }>("select id from credential");
  const runs = await db.query<{ id: string; state: string }>(
    `select id, status || '/' || progress_step || case when lease_owner is null then '' else ', leased' end as state from run`,
  );
  await migrate(db, MIGRATIONS);
  await migrateJobs(db);
  await moveClock(db, `${-ageMs} milliseconds`);
  const upgraded = await dumpSchema(db);
  const northwind = opened.use(await openNorthwind(() => Date.now() - ageMs));
  northwind.refreshToken = expected.refreshToken;
  const service = await serve(
    { DATABASE_URL: database.connectionString, LATCHKEY_DATA_DIR: dataFolder },
    expected,
  );
  opened.defer(async () => await service.stop());
  // Where the test itself reads what decides.
  await checkSigningKey(db, signingOf({ dataFolder }));
  const kept = opened.move();
  return {
    folder,
    expected,
    database,
    db,
    dataFolder,
    northwind,
    url: service.url,
    callers: {
      acme: openCaller(service.url, expected.keys.acme),
      globex: openCaller(service.url, expected.keys.globex),
    },
    stepsBehind: -ageMs / STEP_MS,
    schemas: { fresh, upgraded },
    credentials: credentials.map(({ id }) => id),
    states: new Map(runs.map(({ id, state }) => [id, state])),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

const STEP_MS = 30_000;

/** A while after it was frozen: whatever one-time code was used then, there is another one now, and it is good for long. */
const beginning = (at: string): number => Math.ceil((Date.parse(at) + 2 * STEP_MS) / STEP_MS) * STEP_MS;

/** As `latchkey init` leaves it: private. A repository knows no modes. */
function copyData(folder: string): string {
  const copy = mkdtempSync(join(tmpdir(), "latchkey-thawed-"));
  cpSync(join(folder, "data"), copy, { recursive: true });
  for (const entry of readdirSync(copy, { recursive: true, withFileTypes: true }))
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o700 : 0o600);
  return copy;
}

/** All roles, in this process. */
async function serve(
  environment: Readonly<Record<string, string>>,
  expected: Expected,
): ReturnType<typeof startService> {
  const settings = {
    LATCHKEY_PORT: "0",
    LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
    ...expected.environment,
    ...environment,
  };
  const log = openLog({ level: "silent", format: "json" });
  return await startService(readConfig(settings), log, ["api", "worker"], settings);
}
