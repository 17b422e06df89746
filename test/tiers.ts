/**
 * Two tiers. `npm test` is the fast one: the quickest proof of every promise, and one representative of each class of fault.
 * `npm run test:all` runs everything. What only the second one runs is listed here, or picked by `inTier` where it stands.
 */

import { test, type TestFn, type TestOptions } from "node:test";

export type Tier = "fast" | "all";

/** Set by the runner. A file that is run by hand runs whole. */
export const tier: Tier = process.env["LATCHKEY_TEST_TIER"] === "fast" ? "fast" : "all";

/** Files that only `npm run test:all` runs: why, and what `npm test` runs in their place. */
export const ALL_ONLY: Readonly<Record<string, string>> = {
  "test/flow/crash-matrix.pg.test.ts":
    "workers killed at random moments; instead a kill at each kind of point (flow/failpoints, flow/writes-crash)",
  "test/flow/failpoints-delay.pg.test.ts":
    "20 s at every point; instead an error at every point (flow/failpoints)",
  "test/db/embedded-under-load.pg.test.ts":
    "a load beside kills and full disks; instead one kill and one full disk without a load (db/embedded-watch)",
  "test/flow/promoted-standby.pg.test.ts":
    "two clusters and a promotion; instead a restart of the server under load (flow/database-faults)",
  "test/flow/pgbouncer.pg.test.ts":
    "Debian's PgBouncer before every part, the conformance suite, and kills; instead what a start looks for (db/pooler)",
  "test/flow/rolling-restart.pg.test.ts":
    "a balancer, a load and restarts; instead a drain with requests and streams (cli/serve, runs/events)",
  "test/flow/rolling-upgrade.pg.test.ts":
    "two versions, a balancer and a load; instead what migrations change of the version before (upgrade/beside)",
  "test/flow/memory-limit.pg.test.ts":
    "the kernel's limit, as root, and a million records; instead a worker that is killed as the kernel would (flow/poison), a browser at its own limit (outbound/browser/processes), and the memory of 60,000 records (flow/memory)",
  "test/flow/tried-login-crash.pg.test.ts":
    "ten processes that are killed; instead a candidate that nobody looks at, and one that is tried too long (hosted/tried-login)",
  "test/hosted/tried-login.e2e.ts":
    "a browser; instead the same pages and their forms over HTTP (hosted/tried-login)",
  "test/flow/full-disks.pg.test.ts":
    "five disks, each full under a load; instead the folder of the objects (blobs/full-disk) and the database (db/embedded-watch)",
  "test/flow/clock-jumps.pg.test.ts":
    "libfaketime, fetched from Debian; instead the database's clock (db/fences, worker/) and both in the simulator",
  "test/audit/detached-installation.pg.test.ts":
    "a workload, a kill, and a backup with its restore; instead two accounts' entries (audit/months) and the commands (cli/audit-months)",
  "test/backups/move.pg.test.ts":
    "an embedded server, and 500 MB of rows and objects; instead a restore between two databases, all rows compared (backups/backup)",
  "test/blobs/s3-store.test.ts":
    "Ceph's gateway, 84 MB to fetch; instead moto, which checks no signatures (blobs/s3-moto)",
  "test/blobs/s3-backup.pg.test.ts":
    "Ceph's gateway; instead a backup and a restore with a folder, all rows compared (backups/backup), and the store against moto",
  "test/blobs/s3-service.pg.test.ts":
    "the service on Ceph's gateway; instead the store against moto, and every flow on the folder",
  "test/flow/hostile-clock.pg.test.ts":
    "hostile runs by the clock; instead by CPU time and by how many good runs end beside them (flow/hostile-runs)",
  "test/flow/promised-times.pg.test.ts":
    "promises in seconds; instead that it happens, and what brings it about (crash, zombie, delete, cancel, events)",
  "test/http/slow-clients-clock.pg.test.ts":
    "slow clients by the clock; instead by CPU time (http/slow-clients)",
  "test/flow/ready-under-attack.pg.test.ts":
    "how long others wait during each attack; instead the limits that bound it (http/large-bodies, flow/target-json, operator/typed-documents)",
  "test/dashboard/single-sign-on.e2e.ts":
    "a browser; instead the same provider, and one that misbehaves, over HTTP (operator/oidc, operator/oidc-forged)",
  "test/dashboard/live.e2e.ts":
    "a run of fifteen seconds that an operator watches; instead the rows (runs/live-pictures) and one picture of each kind of page (browser/evidence)",
  "test/dashboard/test-mode.e2e.ts":
    "a browser; instead the lists of both modes by the operator API (test-mode/operators)",
  "test/cli/window.test.ts":
    "an X server and a full Chromium, 830 MB unpacked; instead how the program is started for a window (cli/run-browser)",
  "test/cli/demo.pg.test.ts":
    "the README's first command, whole; instead the demo of all examples, of which it is the first (cli/demo-examples)",
  "test/applications/webdav.pg.test.ts":
    "lighttpd and Radicale, 120 MB unpacked; instead targets that check every request (strategies/digest, nodes/http-methods)",
  "test/applications/services.pg.test.ts":
    "Transmission and etcd, 130 MB unpacked; instead logins and writes against targets of the tests (strategies/http-login, documents/write-answers)",
  "test/flow/browser-canary.pg.test.ts":
    "ten runs with a browser, and a search of everything; instead a picture's pixels and an outline (browser/evidence), rows of a failed login (documents/browser-evidence), what the driver prints (outbound/browser/secrets)",
  "test/applications/browser.pg.test.ts":
    "Verdaccio and Node-RED, 180 MB installed; instead a portal that is drawn by script (documents/browser)",
  "test/outbound/browser/chromiums.e2e.ts":
    "Debian's two Chromiums, a gigabyte unpacked; instead the Chromium of the tests, as their user (documents/browser)",
  "test/outbound/browser/switches.e2e.ts":
    "a Chromium with and without each of 23 switches and options; instead what all of them close together (outbound/browser/egress, documents, processes)",
  "test/sdk/typescript-package.test.ts":
    "packed, installed, and a million records; instead the sources against a service (sdk/typescript)",
  "test/sdk/typescript-browser.e2e.ts":
    "packed, installed and bundled for Chromium; instead the same function in Node.js, which has the same Web Crypto (sdk/webhooks)",
  "test/sdk/python.pg.test.ts":
    "a wheel, and httpx fetched from Debian; instead the TypeScript SDK, which sends the same (sdk/typescript)",
  "test/sdk/mcp-package.pg.test.ts":
    "packed, installed, and 29 MB of the protocol's own client fetched; instead the server by its streams (sdk/mcp.pg)",
  "test/flow/webhook-faults.pg.test.ts":
    "10,000 events under kills, and latencies; instead a kill before and after sending (flow/webhook-crash), and what is delivered beside bad endpoints (webhooks/webhooks)",
  "test/dashboard/schedules.e2e.ts":
    "the pages of schedules in a browser; instead what they show and do by the operator API and the command line (schedules/operators)",
  "test/dashboard/loads.e2e.ts":
    "what pages weigh, and times by the clock; instead the nodes of a page with many records (dashboard/records)",
  "test/dashboard/limits.e2e.ts":
    "a browser; instead what the pages ask the API for (operator/account-limit, webhooks/operators), and axe of other dialogs (dashboard/set-up)",
  "test/flow/memory.pg.test.ts": "100,000 records; instead the streams that carry them (nodes/stream-json)",
};

/** A tier of its own: files that run only when `npm test -- WORD` names them, and why. */
export const NAMED_ONLY: Readonly<Record<string, string>> = {
  "test/images/images.pg.test.ts":
    "builds the images and runs them, as root: seven minutes, and a gigabyte to fetch and to write (npm test -- images/)",
};

/** Files that change something of their process which other files would notice, and so never share one. */
export const OWN_PROCESS: Readonly<Record<string, string>> = {
  "test/flow/traces.pg.test.ts": "an SDK of OpenTelemetry is of the whole process",
  "test/outbound/browser/processes.e2e.ts": "it has a folder for temporary files of its own",
  "test/outbound/browser/switches.e2e.ts":
    "starts every browser without a part, and has a folder for temporary files",
  "test/nodes/node-files.test.ts": "adds node types, which a process has until its end",
  "test/simulator/simulator.pg.test.ts":
    "replaces the process's ids, times of ids and chance by those of a seed",
  "test/db/embedded-users.pg.test.ts": "waits at its top level, to know what it must skip",
  "test/blobs/s3-moto.test.ts": "sets the AWS SDK's environment variables",
  "test/blobs/s3-store.test.ts": "sets the AWS SDK's environment variables",
  "test/blobs/s3-service.pg.test.ts": "sets the AWS SDK's environment variables",
};

/** More CPU seconds than this want a reason in `SLOW_FILES`. */
export const CPU_SECONDS_MAX = 15;

/** Files of the fast tier that take longer than CPU_SECONDS_MAX, and why they are worth it. */
export const SLOW_FILES: Readonly<Record<string, string>> = {
  "test/flow/failpoints.pg.test.ts": "kills a worker at each kind of point, and starts two for each kill",
  "test/flow/crash.pg.test.ts": "kills and drains ten services, each in another state of a run",
  "test/flow/writes-crash.pg.test.ts": "kills seven services, before and after a write was sent",
  "test/flow/poison.pg.test.ts": "a run has to kill three workers before it is given up",
  "test/flow/hostile-runs.pg.test.ts": "runs that take as much CPU time as they may",
  "test/flow/canary-battery.pg.test.ts": "50 ways to fail, and a search of everything that is stored",
  "test/flow/zombie.pg.test.ts":
    "kills and freezes workers with 20 runs, and waits until others have seen the silence",
  "test/flow/self-fence.pg.test.ts":
    "freezes workers while others take their runs over, and starts two for each",
  "test/idempotency/crash.pg.test.ts":
    "kills services at the points that decide, with 150 requests under way",
  "test/expressions/hostile.test.ts": "expressions that take as much CPU time as they may",
  "test/simulator/simulator.pg.test.ts": "200 seeds, each 42 seconds of several processes under faults",
  "test/vault/kms.pg.test.ts": "a key at AWS is a process's own, so every command is one",
  "test/cli/serve.pg.test.ts": "each way to start and to end is a process",
  "test/cli/init.pg.test.ts": "each way to begin, or to be refused, is a process",
  "test/cli/master-key.pg.test.ts": "rotates keys under a service, and kills it",
  "test/cli/embedded.pg.test.ts": "each test starts a PostgreSQL of its own, by commands",
  "test/db/embedded.pg.test.ts": "each test starts a PostgreSQL of its own",
};

/** A test that only `npm run test:all` runs. `instead` says what `npm test` has in its place. */
export function testInAll(instead: string, name: string, options: TestOptions, run: TestFn): void {
  if (instead === "") throw new Error(`"${name}": say what the fast tier has in its place.`);
  if (tier === "all") test(name, options, run);
}

/** The members of an enumeration that run in this tier: all of them, or those that `isFast` picks, which may not be none. */
export function inTier<T>(
  members: readonly T[],
  isFast: (member: T, index: number) => boolean,
  wanted: Tier = tier,
): readonly T[] {
  const fast = members.filter(isFast);
  if (fast.length === 0) throw new Error("The fast tier needs a representative.");
  return wanted === "fast" ? fast : members;
}
