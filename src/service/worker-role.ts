import { join } from "node:path";
import { bindCredentials } from "#actions/credentials/bind-credentials.ts";
import { finishHandedOver } from "#actions/sessions/hand-over-sign-in.ts";
import { settleLeftTries } from "#actions/sessions/try-login.ts";
import type { Services } from "#actions/services.ts";
import { VaultSetupError } from "#actions/vault/prepare-vault.ts";
import {
  directSource,
  isPooled,
  openPool,
  openSession,
  type Database,
  type DatabaseSource,
} from "#db/connection/pool.ts";
import { LoginTurns } from "#engine/login/login-turns.ts";
import { SelfFence } from "#engine/self-fence.ts";
import type { EngineServices } from "#engine/services.ts";
import { LiveViews } from "#engine/live-views.ts";
import { Paces } from "#engine/waiting/paces.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { openAppendLog } from "#lib/append-log.ts";
import { systemClock } from "#lib/clock.ts";
import { systemRandom } from "#lib/random.ts";
import type { Keyring } from "#vault/vault.ts";
import { startAuditKeeper } from "#worker/audit-keeper.ts";
import { openBrowsers } from "#outbound/browser/browsers.ts";
import { openMailer } from "#outbound/mailer.ts";
import { Chores } from "#worker/chores.ts";
import type { OpenLivenessSession } from "#worker/liveness.ts";
import { Quarantine } from "#worker/quarantine.ts";
import { Worker } from "#worker/worker.ts";
import type { Config, Environment } from "./settings/settings.ts";

/** The services that a worker needs: those of every role, and a vault that opens. */
type WorkerServices = Services & { readonly vault: Keyring };

/** Starts the worker of a process and returns the function that ends it. `environment` is for the processes that it starts. */
export async function startWorker(
  config: Config,
  services: WorkerServices,
  source: DatabaseSource,
  environment: Environment,
): Promise<() => Promise<void>> {
  if (!services.vault.canOpen)
    throw new VaultSetupError("The worker role needs the master key of this database.");
  // Before the first run: credentials that are not bound to origins by then are not used.
  await bindCredentials(services.db, services.vault, services.signing, services.log);
  const engine = openEngine(config, services);
  const jobs = openJobs(services, source);
  const worker = await Worker.start(engine, {
    concurrency: config.workerConcurrency,
    openSession: livenessSessions(source),
    chores: new Chores(engine, jobs.db, {
      finishSignIn: async (stateHash) => await finishHandedOver(services, stateHash),
      settleLeftTries: async () => await settleLeftTries(services),
    }),
    quarantine: new Quarantine({ order: { environment, source }, log: services.log }),
  }).catch(async (error: unknown) => {
    await jobs.close();
    throw error;
  });
  const auditKeeper = startAuditKeeper(
    engine,
    openAppendLog(join(config.dataDir, "audit-checkpoints.ndjson")),
  );
  return async () => {
    await worker.stop();
    await jobs.close();
    await auditKeeper.stop();
    await engine.browsers.close();
    await engine.expressions.close();
  };
}

/** One listens; the others fetch jobs and record their ends. */
const JOB_CONNECTIONS = 4;

/** The job runner listens, for which a connection through a pooler is of no use. */
function openJobs(
  { db, log }: Pick<WorkerServices, "db" | "log">,
  source: DatabaseSource,
): { readonly db: Database; close(): Promise<void> } {
  if (!isPooled(source)) return { db, close: async () => {} };
  const own = openPool(directSource(source), {
    applicationName: "latchkey jobs",
    max: JOB_CONNECTIONS,
    log: (message) => log.warn(message),
  });
  return { db: own, close: async () => await own.end() };
}

/** Starts the worker of a quarantine process, and returns it with the function that ends it. */
export async function startQuarantinedWorker(
  config: Config,
  services: WorkerServices,
  source: DatabaseSource,
): Promise<{ readonly worker: Worker; stop(): Promise<void> }> {
  const engine = openEngine(config, services);
  const worker = await Worker.startQuarantined(engine, { openSession: livenessSessions(source) });
  return {
    worker,
    stop: async () => {
      await worker.stop();
      await engine.browsers.close();
      await engine.expressions.close();
    },
  };
}

function openEngine(config: Config, services: WorkerServices): EngineServices {
  return {
    db: services.db,
    news: services.news,
    blobs: services.blobs,
    vault: services.vault,
    audit: services.signing.audit,
    handleMac: (parts) => services.signing.runHandle(parts),
    gate: services.gate,
    browsers: openBrowsers({ gate: services.gate, settings: config.browser, log: services.log }),
    fence: new SelfFence(systemClock),
    loginTurns: new LoginTurns(systemClock),
    paces: new Paces(services.db, systemClock),
    liveViews: new LiveViews(services),
    expressions: openEvaluator({ threads: 1 }),
    loginExpressions: services.loginExpressions,
    clientSecret: services.clientSecret,
    log: services.log,
    clock: systemClock,
    random: systemRandom,
    scratchFolder: join(config.dataDir, "scratch"),
    mailer: config.mail && openMailer(config.mail, config.mail.password?.reveal() ?? null),
    publicUrl: services.publicUrl,
    loginTimeoutMs: config.loginTimeoutMs,
  };
}

const livenessSessions =
  (source: DatabaseSource): OpenLivenessSession =>
  async (onLost) =>
    await openSession(source, { applicationName: "latchkey liveness", onLost });
