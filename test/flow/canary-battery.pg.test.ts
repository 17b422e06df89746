import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { openPool, type Database } from "#db/connection/pool.ts";
import { guardRows } from "#db/signing/signed-rows.ts";
import { openProgram } from "../browser/program.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { putStrategyInForce } from "../in-force.ts";
import { signingOf } from "../invariants.ts";
import { freePort } from "../free-port.ts";
import { install, type Installation } from "../service.ts";
import { testInAll, tier } from "../tiers.ts";
import { DEFAULT_LOGIN, DEFAULT_NODES, LEAK_PATHS, type LeakPath } from "./battery-paths.ts";
import { dumpDatabase, formsOf, readFolder, recordAnswers, search, type Surface } from "./canary-search.ts";

/** Letters that no encoding changes and no case: what a message cuts off, or what an escape mangles, is found by its rest. */
const letters = (count: number): string =>
  Array.from(randomBytes(count), (byte) => "abcdefghijklmnop"[byte & 15]).join("");
/** Browsers only start in the tier of all tests. */
const PATHS = Object.entries(LEAK_PATHS)
  .map(([name, path], index) => ({ name, path, key: `path-${index}` }))
  .filter(({ path }) => tier === "all" || path.browses !== true);

/** Two parts that all canaries of an installation share stand at either end, so that large places are searched once. */
interface Canaries {
  readonly ends: readonly string[];
  readonly own: ReadonlyMap<string, string>;
}

function makeCanaries(): Canaries {
  const ends = [letters(24), letters(24)];
  const own = PATHS.map(({ key }) => [key, `${ends[0]}${letters(12)} "q"\\n<b>&' +/=%41${ends[1]}`] as const);
  return { ends, own: new Map(own) };
}

/** Everything that a path needs to run: the target's answers, its own strategy, Blueprint and credential. */
function documentsOf(key: string, path: LeakPath, url: string): string[] {
  const written = (yaml: string): string => yaml.replaceAll("{PATH}", `/${key}`);
  const host =
    path.host === "dead"
      ? "http://127.0.0.1:9"
      : path.host === "https"
        ? url.replace("http:", "https:")
        : url;
  return [
    `strategy: strat_${key}\naccount: acme\nhosts: ["${host}"]
fields: [{ key: secret, type: password, required: true }]\nlogin:${written(path.login ?? DEFAULT_LOGIN)}`,
    `blueprint: ${key}\naccount: acme\ncredentials: { slot: { strategy: strat_${key} } }\nnodes:
${written(path.nodes ?? DEFAULT_NODES)}`,
  ];
}

const typed = (canaries: Canaries, key: string, path: LeakPath): string => {
  const canary = canaries.own.get(key) ?? assert.fail(key);
  return path.secret?.(canary) ?? canary;
};

/** The target: gives back what it is told, as each path says. */
async function startEcho(
  canaries: Canaries,
): Promise<{ readonly url: string; readonly server: Server; readonly sent: Set<string> }> {
  const sent = new Set<string>();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const key = new URL(request.url ?? "/", "http://target").pathname.slice(1);
    const { path } = PATHS.find((each) => each.key === key) ?? assert.fail(`no path ${request.url}`);
    const secret = typed(canaries, key, path);
    const form = new URLSearchParams(await text(request)).get("secret");
    const header = request.headers["x-secret"];
    if (form === secret || header === secret) sent.add(key);
    if (path.answer) path.answer(response, secret, request);
    else response.end("{}");
  };
  const server = createServer(
    (request, response) => void answer(request, response).catch(() => response.destroy()),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, sent };
}

interface Battery extends AsyncDisposable {
  readonly canaries: Canaries;
  readonly statuses: ReadonlyMap<string, readonly string[]>;
  readonly sent: ReadonlySet<string>;
  readonly details: ReadonlySet<string>;
  surfaces(): Promise<readonly Surface[]>;
}

/** Runs every path in an installation of its own: one process for the API, another one for the runs. */
async function runBattery(rounds: number, workerEnvironment: Record<string, string>): Promise<Battery> {
  await using opened = new AsyncDisposableStack();
  const canaries = makeCanaries();
  const target = await startEcho(canaries);
  opened.defer(() => target.server.closeAllConnections());
  opened.defer(() => void target.server.close());
  // A database server of its own, so that its log and its files are searched as well.
  const installation = opened.use(await install({ DATABASE_URL: "", LATCHKEY_DRAIN_SECONDS: "1" }));
  const recorded = recordAnswers();
  opened.defer(() => recorded.stop());
  const embedded = await startEmbeddedPostgres({ dataDir: installation.dataFolder });
  opened.defer(async () => await embedded.stop());
  const db = openPool(embedded.ownerConnection, {
    applicationName: "latchkey-test",
    statementTimeoutMs: 60_000,
    queryTimeoutMs: 65_000,
  });
  opened.defer(async () => await db.end());
  guardRows(db, signingOf(installation), null);
  // A few at a time: on a busy machine one transaction for all of them takes longer than it may.
  await installation.apply("account: acme");
  for (let first = 0; first < PATHS.length; first += 15) {
    const some = PATHS.slice(first, first + 15).map(({ key, path }) => ({
      path,
      documents: documentsOf(key, path, target.url),
    }));
    for (const { path, documents } of some)
      if (path.before) await putStrategyInForce(db, documents.shift() ?? assert.fail("no strategy"));
    await installation.apply(...some.flatMap(({ documents }) => documents));
  }
  await db.query("alter table run_result add constraint planted check (key <> 'refused_by_the_database')");
  const key = await installation.createKey("acme");
  const [apiMetrics, workerMetrics] = [String(await freePort()), String(await freePort())];
  const browser = tier === "all" ? await openProgram() : null;
  opened.defer(() => browser?.remove());
  const seen = { LATCHKEY_ACCESS_LOG: "on", ...(browser && { LATCHKEY_BROWSER: browser.path }) };
  const [api] = await Promise.all([
    installation.serveProcess({ ...seen, LATCHKEY_METRICS_PORT: apiMetrics }, ["api"]),
    installation.serveProcess({ ...seen, ...workerEnvironment, LATCHKEY_METRICS_PORT: workerMetrics }, [
      "worker",
    ]),
  ]);
  const caller = openCaller(api.url, key);
  const statuses = await runAll(caller, canaries, rounds);
  // Searched like every recorded answer.
  for (const port of [apiMetrics, workerMetrics])
    assert.match(
      await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
      /latchkey_runs_failed_total/,
    );
  const rows = await db.query<{ detail: string }>(
    "select distinct error_detail as detail from run where error_detail is not null",
  );
  const environment = readFileSync(`/proc/${api.child.pid}/environ`);
  const kept = opened.move();
  return {
    canaries,
    statuses,
    sent: target.sent,
    details: new Set(rows.map(({ detail }) => detail)),
    surfaces: async () => await surfacesOf(installation, db, recorded.answers, environment),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

async function runAll(
  caller: Caller,
  canaries: Canaries,
  rounds: number,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const statuses = new Map<string, string[]>();
  const waiting = [...PATHS];
  const carry = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { key, path } = next;
      const credential = await connect(caller, `strat_${key}`, { secret: typed(canaries, key, path) });
      const ids: string[] = [];
      for (let round = 0; round < rounds; round++) {
        const { body } = await caller.post(`/blueprints/${key}/trigger`, { credential_id: credential });
        ids.push(body.id);
      }
      const ended: { readonly id: string; readonly status: string }[] = [];
      for (const id of ids) ended.push((await caller.waitForRun(id, 60_000)).body);
      for (const { id, status } of ended) {
        if (status !== "completed") continue;
        await caller.get(`/blueprint-runs/${id}/results?deliveryMethod=direct`);
        const presigned = await caller.get(`/blueprint-runs/${id}/results`);
        assert.equal((await fetch(presigned.body.results.out)).status, 200);
      }
      statuses.set(
        key,
        ended.map(({ status }) => status),
      );
    }
  };
  await Promise.all(Array.from({ length: 6 }, carry));
  return statuses;
}

async function surfacesOf(
  installation: Installation,
  db: Database,
  answers: readonly Surface[],
  environment: Buffer,
): Promise<readonly Surface[]> {
  await db.query("checkpoint");
  return [
    ...(await dumpDatabase(db)),
    ...readFolder(installation.dataFolder),
    { place: "standard error", bytes: Buffer.from(installation.logs()) },
    { place: "the environment of the API's process", bytes: environment },
    ...answers,
  ];
}

/** Where which path's canary was found: `<path>: <place>`, each once. */
function leaksOf(
  { canaries }: Battery,
  surfaces: readonly Surface[],
): ReadonlyMap<string, ReadonlySet<string>> {
  const ends = canaries.ends.map(allForms);
  const touched = surfaces.filter((surface) => ends.some((forms) => search([surface], forms).length > 0));
  const leaks = new Map<string, Set<string>>();
  const note = (name: string, place: string): void =>
    void leaks.set(
      name,
      (leaks.get(name) ?? new Set()).add(place.replaceAll(/[A-Za-z0-9]{16,}|\d{3,}/g, "…")),
    );
  for (const surface of touched) {
    const owners = PATHS.filter(({ key }) => {
      const own = canaries.own.get(key)?.slice(24, 36) ?? "";
      return search([surface], allForms(own)).length > 0;
    });
    for (const { name } of owners) note(name, surface.place);
    if (owners.length === 0) note("unknown", surface.place);
  }
  return leaks;
}

/** As software writes it, and as an author's expression may have changed it. */
function allForms(letters: string): ReadonlyMap<string, Buffer> {
  const backward = Array.from(letters).toReversed().join("");
  return new Map([
    ...formsOf(letters),
    ...[...formsOf(backward)].map(([form, bytes]) => [`${form}, reversed`, bytes] as const),
    ["letter by letter", Buffer.from(Array.from(letters).join(" "))],
  ]);
}

const ROUNDS = tier === "fast" ? 1 : 5;

test(
  "200 runs on 40 and more ways to fail: no secret is found anywhere outside the vault",
  { timeout: 300_000 },
  async () => {
    await using battery = await runBattery(ROUNDS, {});
    const statuses = [...battery.statuses.values()].flat();
    assert.ok(PATHS.length >= 40 && statuses.length === ROUNDS * PATHS.length, `${statuses.length} runs`);
    for (const { key, name, path } of PATHS) {
      const wanted = path.completes === true ? "completed" : "failed";
      assert.deepEqual(new Set(battery.statuses.get(key)), new Set([wanted]), name);
    }
    const inTime = PATHS.filter(({ path }) => path.answer !== undefined);
    assert.deepEqual(
      inTime.filter(({ key }) => !battery.sent.has(key)).map(({ name }) => name),
      [],
      "the target was told the secret",
    );
    assert.ok(battery.details.size >= PATHS.length - 8, `${battery.details.size} different reasons`);
    const surfaces = await battery.surfaces();
    const places = [
      "postgres.log",
      "public.run.error_detail",
      "public.run_step.log",
      "standard error",
      "public.run_step.output",
      "public.run_result.content",
      "file objects/steps/",
      "file objects/results/",
    ];
    for (const place of [
      ...places,
      "answer GET /api/v1/blueprint-runs/",
      "the environment of the API's process",
    ])
      assert.ok(
        surfaces.some((surface) => surface.place.includes(place) && surface.bytes.length > 0),
        place,
      );
    assert.match(
      String(surfaces.find(({ place }) => place === "file postgres.log")?.bytes),
      /planted/,
      "a constraint failed",
    );
    assert.deepEqual(leaksOf(battery, surfaces), new Map());
    assert.match(installationLog(surfaces), /a target gave a secret of the run back/);
  },
);

/** The battery without one of the nets, or without both: which paths leak then. */
async function leaksWithout(...nets: readonly ("door" | "store")[]): Promise<readonly string[]> {
  const loader = pathToFileURL(join(import.meta.dirname, "no-redaction.mjs"));
  for (const net of nets) loader.searchParams.append("net", net);
  await using battery = await runBattery(1, { NODE_OPTIONS: `--import ${loader.href}` });
  // Without the files of the database server: they hold what the dump shows, many times over.
  const surfaces = (await battery.surfaces()).filter(({ place }) => !place.startsWith("file postgres/"));
  const leaks = leaksOf(battery, surfaces);
  if (nets.length === 1) assert.ok(JSON.stringify([...battery.statuses]).includes("completed"));
  return [...leaks.keys()].toSorted();
}

const namesWith = (isOne: (path: LeakPath) => boolean): readonly string[] =>
  PATHS.filter(({ path }) => isOne(path))
    .map(({ name }) => name)
    .toSorted();

testInAll(
  "the same runs with both nets, and test/engine/handles.test.ts",
  "with the store-time redactor taken out, the door alone holds",
  { timeout: 300_000 },
  async () => assert.deepEqual(await leaksWithout("store"), []),
);

testInAll(
  "the same runs with both nets, and test/documents/door.pg.test.ts",
  "with the door taken out, only what an author's expression has changed is kept",
  { timeout: 300_000 },
  async () =>
    assert.deepEqual(
      await leaksWithout("door"),
      namesWith(({ changes }) => changes === true),
    ),
);

testInAll(
  "the same runs with both nets, and test/engine/redact.test.ts",
  "with both nets taken out, only what the target itself gives back is kept",
  { timeout: 300_000 },
  async () =>
    assert.deepEqual(
      await leaksWithout("door", "store"),
      namesWith(({ echoes }) => echoes === true),
    ),
);

const installationLog = (surfaces: readonly Surface[]): string =>
  String(surfaces.find(({ place }) => place === "standard error")?.bytes);
