import { join } from "node:path";
import { AccountQuotas } from "#actions/runs/account-quotas.ts";
import { openClientOf } from "#actions/keys/client-of.ts";
import { claimStore, StoreOfAnother } from "#actions/upkeep/claim-store.ts";
import { checkSigningKey } from "#actions/keys/check-signing-key.ts";
import { followVaultKeys } from "#actions/vault/follow-vault-keys.ts";
import { describePlain, listPlainHosts } from "#actions/upkeep/list-plain-hosts.ts";
import { describeSecretProblem, listSecretProblems } from "#actions/secrets/list-secret-problems.ts";
import { openMetrics } from "#actions/upkeep/read-metrics.ts";
import { listVariableOrigins } from "#actions/upkeep/list-variable-origins.ts";
import { OidcProvider } from "#actions/operators/oidc-provider.ts";
import { RefusedSignIns } from "#actions/operators/refused-sign-ins.ts";
import { OperatorWatch } from "#actions/operators/watch-changes.ts";
import { prepareVault } from "#actions/vault/prepare-vault.ts";
import type { Needs, OperatorSignIn, Services } from "#actions/services.ts";
import { openTombstones } from "#actions/credentials/tombstones.ts";
import { RunWatch } from "#actions/runs/watch-runs.ts";
import { EventWatch } from "#actions/webhooks/watch-events.ts";
import { openPool, type Database, type DatabaseSource } from "#db/connection/pool.ts";
import { RunNotifier } from "#db/runs/run-notifier.ts";
import { listLoggingRisks } from "#db/connection/logging-risks.ts";
import { listRoleRisks } from "#db/connection/role-risks.ts";
import { settleRows } from "#db/signing/signed-rows.ts";
import { ceilingsOf, type Ceilings } from "#domain/ceilings.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { armFailpoints } from "#lib/failpoint.ts";
import { describeError, type Log } from "#lib/log.ts";
import { Passwords } from "#lib/password.ts";
import { openSigning, readSigningKey } from "#lib/signing.ts";
import { TokenBuckets } from "#lib/token-bucket.ts";
import { openGate, type Gate } from "#outbound/gate.ts";
import { isPlainPublic } from "#outbound/plain-http.ts";
import { readKeys, type ReadKeys } from "#vault/key-source.ts";
import type { Keyring } from "#vault/vault.ts";
import { secretSources } from "./settings/client-secrets.ts";
import {
  missingKey,
  requireSigningKey,
  StartRefused,
  type Config,
  type Environment,
} from "./settings/settings.ts";
import { followFullDisks } from "./follow-full-disks.ts";
import { startApiProcesses, type ApiOrder } from "./api-processes.ts";
import { openClientSecrets } from "./open-client-secrets.ts";
import { againWhileUnreachable, openDatabase } from "./open-database.ts";
import { hasMasterKey, openKeySource } from "./open-key-source.ts";
import { openStore } from "./open-store.ts";
import { openMetricsServer } from "./metrics-server.ts";
import { openServer, type Server } from "./server.ts";

export type Role = "api" | "worker";

export interface RunningService {
  /** The service's URL: LATCHKEY_PUBLIC_URL, or the address that it listens on. */
  readonly url: string;
  /** The local address that it listens on. */
  readonly localUrl: string;
  /** Settles only if the service can't continue, with the reason. The process must then end. */
  readonly lost: Promise<Error>;
  /** Stops taking work, hands runs back, waits for requests in progress, and ends, within the configured drain time. */
  stop(): Promise<void>;
}

/** A process of the api role alone does not load the engine. */
const loadWorkerRole = async () => await import("./worker-role.ts");

/**
 * Starts the roles of one process. If one of them fails to start, stops the others. `environment` is the source of `config`, for
 * processes that a worker starts.
 */
export async function startService(
  config: Config,
  log: Log,
  roles: readonly Role[],
  environment: Environment,
  processes = 1,
): Promise<RunningService> {
  // Keys first: a wrong key is reported before anything is opened.
  const signingKey = readSigningKey(requireSigningKey(config).reveal());
  const privateHalf = await readPrivateHalf(config, roles);
  armAll(config, log);
  const workerRole = roles.includes("worker") ? await loadWorkerRole() : null;
  const keys = { signingKey, privateHalf };
  const start = async (): Promise<RunningService> =>
    await startParts(config, log, { roles, workerRole, environment, processes, keys });
  return await againWhileUnreachable(config, log, start);
}

interface StartOrder {
  readonly roles: readonly Role[];
  /** null: without the role. */
  readonly workerRole: Awaited<ReturnType<typeof loadWorkerRole>> | null;
  readonly environment: Environment;
  readonly processes: number;
  readonly keys: {
    readonly signingKey: ReturnType<typeof readSigningKey>;
    readonly privateHalf: ReadKeys | null;
  };
}

async function startParts(
  config: Config,
  log: Log,
  { roles, workerRole, environment, processes, keys }: StartOrder,
): Promise<RunningService> {
  const database = await openDatabase(config, log, { stays: true });
  const news = new RunNotifier(database.db, database.source, log);
  const parts: (() => Promise<unknown>)[] = [];
  let closeShared = async (): Promise<unknown> => null;
  const closeAll = async (): Promise<void> => {
    // Concurrently, so that together they take no longer than the drain time. The database is closed when nothing needs it any more.
    await Promise.all(parts.map(async (close) => await close().catch((error: unknown) => note(log, error))));
    // Shared by all parts.
    await closeShared().catch((error: unknown) => note(log, error));
    await settleRows(database.db);
    await news.close().catch((error: unknown) => note(log, error));
    await database.close().catch((error: unknown) => note(log, error));
  };
  try {
    let server: Server | null = null;
    const publicUrl = (): string => config.publicUrl ?? server?.url ?? `http://${config.host}:${config.port}`;
    const ceilings = ceilingsOf(1);
    const made = { config, log, db: database.db, news, publicUrl, ceilings };
    const services = await openServices(made, keys.signingKey, keys.privateHalf);
    closeShared = async () => await closeServices(services);
    await claimStoreAtStart(services);
    await warnOfRisks(services, config.databaseUrl === null || config.databaseOwnerUrl !== null);
    parts.push(followVaultKeys(database.db, services.vault, log), followFullDisks(log));
    // The port is opened before the worker starts: a process that can't listen must not have taken runs.
    const goneForMs = (): number => database.goneForMs();
    const order = { environment: withoutMasterKey(environment), source: database.source, processes };
    const listening =
      processes === 1
        ? await openServer(services, serverOptions(config, roles.includes("api"), ceilings, goneForMs))
        : await startApiProcesses(order, log, goneForMs);
    server = listening;
    parts.push(() => listening.close(config.drainMs));
    if (config.metrics !== null) parts.push(await serveMetrics(services, config, config.metrics));
    if (workerRole !== null)
      parts.push(await workerRole.startWorker(config, services, database.source, environment));
    return { url: publicUrl(), localUrl: listening.url, lost: database.lost, stop: closeAll };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

const serverOptions = (
  { host, port, trustedProxies, accessLog }: Config,
  api: boolean,
  ceilings: Ceilings,
  databaseGoneForMs: () => number,
): Parameters<typeof openServer>[1] => ({
  host,
  port,
  api,
  trustedProxies,
  accessLog,
  ceilings,
  databaseGoneForMs,
});

/** docs/decisions/0013: the api role seals with the public key in the database. */
const withoutMasterKey = (environment: Environment): Environment => ({
  ...environment,
  LATCHKEY_MASTER_KEY: undefined,
});

/** One of several processes with the api role alone. The process that started it has migrated the database and maintains it. */
export async function startApiProcess(
  config: Config,
  log: Log,
  { source, processes, number }: ApiOrder,
  databaseGoneForMs: () => number,
): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const signingKey = readSigningKey(requireSigningKey(config).reveal());
  armAll(config, log);
  const ceilings = ceilingsOf(processes);
  const db = openPool(source, {
    applicationName: "latchkey",
    max: ceilings.databaseConnections,
    log: (message) => log.warn(message),
  });
  const news = new RunNotifier(db, source, log);
  let url: string | null = config.publicUrl;
  const publicUrl = (): string => url ?? `http://${config.host}:${config.port}`;
  const services = await openServices({ config, log, db, news, publicUrl, ceilings }, signingKey, null);
  const unfollow = followVaultKeys(db, services.vault, log);
  const unfollowDisks = followFullDisks(log);
  const server = await openServer(services, serverOptions(config, true, ceilings, databaseGoneForMs));
  url ??= server.url;
  const { metrics } = config;
  const at = metrics === null || metrics.port === 0 ? metrics : { ...metrics, port: metrics.port + number };
  const closeMetrics = at === null ? null : await serveMetrics(services, config, at);
  return {
    url: server.url,
    stop: async () => {
      await Promise.all([server.close(config.drainMs), closeMetrics?.(), unfollow(), unfollowDisks()]);
      await closeServices(services);
      await settleRows(db);
      await news.close();
      await db.end();
    },
  };
}

/** Returns what stops it. */
async function serveMetrics(
  services: Services,
  { dataDir, objectStore }: Config,
  at: NonNullable<Config["metrics"]>,
): Promise<() => Promise<void>> {
  const folders = { data: dataDir, ...(objectStore === null && { objects: join(dataDir, "objects") }) };
  const opened = openMetrics(services, folders);
  const server = await openMetricsServer(opened.read, at).catch((error: unknown) => {
    opened.close();
    throw error;
  });
  services.log.info({ url: `${server.url}/metrics` }, "metrics are served");
  return async () => {
    opened.close();
    await server.close();
  };
}

function armAll({ failpoints }: Config, log: Log): void {
  if (failpoints.length === 0) return;
  armFailpoints(failpoints, (failpoint, action) => log.warn({ failpoint, action }, "a fail-point acts"));
  log.warn({ failpoints }, "LATCHKEY_FAILPOINTS is set: this process fails on purpose, for tests only");
}

/** A store that is temporarily unavailable does not prevent the start: code that deletes objects checks again. Throws StoreOfAnother. */
async function claimStoreAtStart({ db, blobs, log }: Needs<"db" | "blobs" | "log">): Promise<void> {
  try {
    await claimStore(db, blobs);
  } catch (error) {
    if (error instanceof StoreOfAnother) throw error;
    log.warn(describeError(error), "could not check which installation the object store belongs to");
  }
}

const closeServices = async (services: Awaited<ReturnType<typeof openServices>>): Promise<unknown> =>
  await Promise.all([
    services.gate.close(),
    services.oidcGate.close(),
    services.loginExpressions.close(),
    services.refusedSignIns.close(),
  ]);

async function openServices(
  made: {
    readonly config: Config;
    readonly log: Log;
    readonly db: Database;
    readonly news: RunNotifier;
    readonly publicUrl: () => string;
    readonly ceilings: Ceilings;
  },
  signingKey: ReturnType<typeof readSigningKey>,
  privateHalf: ReadKeys | null,
): Promise<Services & { readonly vault: Keyring; readonly oidcGate: Gate }> {
  const { config, log, db, news, publicUrl, ceilings } = made;
  const signing = openSigning(signingKey);
  await checkSigningKey(db, signing, log);
  const oidcGate = openOidcGate(config);
  const vault = await prepareVault(db, privateHalf);
  return {
    db,
    blobs: openStore(config),
    signing,
    vault,
    log,
    tombstones: openTombstones(join(config.dataDir, "tombstones.ndjson")),
    buckets: new TokenBuckets(undefined, ceilings.processes),
    quotas: new AccountQuotas(db, config.quotas, log),
    passwords: new Passwords(signing.operators.passwordKey),
    operatorSignIn: openOperatorSignIn(config, oidcGate, log),
    refusedSignIns: new RefusedSignIns(db, signing.audit, log),
    oidcGate,
    news,
    runWatch: new RunWatch(db, news, log, ceilings.eventStreams),
    eventWatch: new EventWatch(db, news, log, ceilings.eventStreams),
    operatorWatch: new OperatorWatch(db, news, log, ceilings.dashboardStreams),
    gate: openGate({ allow: config.egressAllow, tellsTraces: config.tracesTargets }),
    loginExpressions: openEvaluator({ threads: 1 }),
    clientSecret: openClientSecrets({
      db,
      vault,
      file: config.clientSecrets,
      environmentSecret: config.environmentSecret,
      variables: await listVariableOrigins(db),
    }),
    secretSources: secretSources(config.clientSecrets, config.environmentSecret),
    clientOf: openClientOf(config.trustedProxies, log),
    publicUrl,
  };
}

/**
 * The OIDC issuer may be at a private address. This does not widen what Blueprints may reach, but addresses that are allowed for
 * Blueprints are allowed here, too.
 */
function openOidcGate({ egressAllow, signIn: { oidc } }: Config): Gate {
  if (oidc === null) return openGate({ allow: egressAllow });
  const { hostname, port, protocol } = oidc.issuer;
  const fallback = protocol === "https:" ? 443 : 80;
  return openGate({ allow: [...egressAllow, `${hostname}:${port || fallback}`] });
}

function openOperatorSignIn({ signIn }: Config, gate: Gate, log: Log): OperatorSignIn {
  const { oidc, passwordSignIn: byPassword } = signIn;
  if (oidc === null) return { byPassword, oidc: null };
  const { label, requireTotp } = oidc;
  return { byPassword, oidc: { provider: new OidcProvider(oidc, gate, log), label, requireTotp } };
}

/** Warns of risks that an operator should know about, but that don't prevent a start. */
async function warnOfRisks(
  { db, secretSources: sources, log, publicUrl }: Services,
  isMigratedByOwner: boolean,
): Promise<void> {
  if (process.getuid?.() === 0) log.warn(RUNS_AS_ROOT);
  if (isPlainPublic(publicUrl())) log.warn({ publicUrl: publicUrl() }, PLAIN_PUBLIC_URL);
  for (const each of await listPlainHosts(db)) log.warn(describePlain(each));
  for (const risk of await listRoleRisks(db, isMigratedByOwner)) log.warn(risk);
  for (const risk of await listLoggingRisks(db)) log.warn(risk);
  for (const problem of await listSecretProblems(db, sources)) {
    const { account, strategyId, name } = problem;
    // One customer's missing secret must not prevent the service from starting for the others.
    log.warn({ account, strategyId, secret: name }, describeSecretProblem(problem));
  }
}

const RUNS_AS_ROOT =
  "the service runs as root, so a vulnerability in it would expose the whole machine. Run it as a separate user that owns the data folder";

const PLAIN_PUBLIC_URL =
  "INSECURE: the service is reached without encryption over public networks: anyone on the path can read credentials, keys and sign-ins";

/** docs/decisions/0013: only the worker role gets the private keys. */
async function readPrivateHalf(config: Config, roles: readonly Role[]): Promise<ReadKeys | null> {
  if (roles.includes("worker")) {
    if (!hasMasterKey(config)) throw missingKey("master", config.masterKeyFile);
    return await readKeys(openKeySource(config));
  }
  if (config.masterKey) {
    throw new StartRefused(
      "LATCHKEY_MASTER_KEY is set, but this process has only the api role: it seals with the public key in the database and " +
        "must not have the private key. Unset the variable for this process.",
    );
  }
  return null;
}

function note(log: Log, error: unknown): void {
  log.error(describeError(error), "a part of the service failed to stop");
}

/** A single run needs few. */
const QUARANTINE_CONNECTIONS = 4;

/**
 * Starts the worker that executes suspects in a separate process. The service that started the process has migrated the database
 * and maintains it.
 */
export async function startQuarantined(
  config: Config,
  log: Log,
  source: DatabaseSource,
): Promise<{ readonly idle: Promise<void>; isFree(): boolean; stop(): Promise<void> }> {
  const signingKey = readSigningKey(requireSigningKey(config).reveal());
  const privateHalf = await readPrivateHalf(config, ["worker"]);
  armAll(config, log);
  const db = openPool(source, {
    applicationName: "latchkey quarantine",
    max: QUARANTINE_CONNECTIONS,
    log: (message) => log.warn(message),
  });
  const news = new RunNotifier(db, source, log);
  const made = { config, log, db, news, publicUrl: () => "", ceilings: ceilingsOf(1) };
  const services = await openServices(made, signingKey, privateHalf);
  const unfollow = followVaultKeys(db, services.vault, log);
  const { startQuarantinedWorker } = await loadWorkerRole();
  const quarantined = await startQuarantinedWorker(config, services, source);
  return {
    idle: quarantined.worker.idle,
    isFree: () => quarantined.worker.activeCount === 0,
    stop: async () => {
      await quarantined.stop();
      await Promise.all([unfollow(), closeServices(services)]);
      await settleRows(db);
      await news.close();
      await db.end();
    },
  };
}
