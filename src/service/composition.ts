import { existsSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import type { Composition } from "#cli/composition.ts";
import { currentLogin, findLogin } from "#cli/kept-logins.ts";
import { CommandFailed, EXIT_CODES, withProgress } from "#cli/output.ts";
import { runProgram } from "#cli/program.ts";
import { stopSignal } from "#cli/stop-signal.ts";
import { must } from "#lib/assert.ts";
import { armFailpoints } from "#lib/failpoint.ts";
import type { Database } from "#db/connection/pool.ts";
import type { Log } from "#lib/log.ts";
import type { Secret } from "#lib/secret.ts";
import type { Browsers } from "#outbound/browser/browsers.ts";
import type { BrowserWindow } from "#outbound/browser/open-browser.ts";
import type { Gate } from "#outbound/gate.ts";
import { isPlainPublic } from "#outbound/plain-http.ts";
import type { ServiceClient } from "#outbound/service-client.ts";
import type { Keyring } from "#vault/vault.ts";
import {
  fileSecrets,
  foreignEnvironment,
  missingKey,
  nodeOptions,
  readConfig,
  readEnvironmentSecret,
  readNodeFiles,
  takeEnvironment,
  type Config,
  type Environment,
} from "./settings/settings.ts";
import { readDisplay } from "./settings/browser.ts";
import { secretSources } from "./settings/client-secrets.ts";
import { readPlainUrl } from "./settings/read-value.ts";
import { guardProcess } from "./guard-process.ts";
import { hasMasterKey, openKeySource } from "./open-key-source.ts";

// Each command loads only the parts that it needs: `--help` and `keys` must not wait for the HTTP server and the engine.

const hasDatabase = ({ databaseUrl, dataDir }: Config): boolean =>
  databaseUrl !== null || existsSync(join(dataDir, "postgres"));

/** A mistyped folder or another working directory must not create a second, empty installation. */
function requireDatabase(settings: Config): void {
  if (hasDatabase(settings)) return;
  if (settings.serviceUrl !== null)
    throw new CommandFailed(
      "There is no Latchkey database on this machine. To work on the service at LATCHKEY_URL, sign in (latchkey login), or set LATCHKEY_TOKEN as well.",
    );
  throw new CommandFailed(
    `There is no Latchkey database in ${settings.dataDir}. Run \`latchkey init\` to create one, or specify where it is with ` +
      "LATCHKEY_DATA_DIR (relative to the working directory) or DATABASE_URL.",
  );
}

/** Opens the database for one command, and closes it after. */
async function withDatabase<T>(
  settings: Config,
  log: () => Promise<Log>,
  {
    create,
    migrates,
    asOwner,
  }: { readonly create: boolean; readonly migrates: boolean; readonly asOwner: boolean },
  work: (db: Database) => Promise<T>,
): Promise<T> {
  if (!create) requireDatabase(settings);
  // For fault tests that kill a command halfway; `serve` logs that they are set.
  armFailpoints(settings.failpoints);
  // An embedded server that was started for this command is stopped again, even after Ctrl-C.
  const interrupt = stopSignal(["SIGINT", "SIGTERM"]);
  const { openDatabase, withOwner } = await import("./open-database.ts");
  const opening = openDatabase(settings, await log(), { olderSchema: migrates ? "migrate" : "refuse" });
  const database = await withProgress("Opening the database", opening);
  const { settleRows } = await import("#db/signing/signed-rows.ts");
  try {
    await verifyRows(settings, database.db, await log());
    return await interrupt.race(asOwner ? withOwner(database, await log(), work) : work(database.db));
  } finally {
    await settleRows(database.db);
    await database.close();
  }
}

/** What commands need of the database. */
function databaseParts(
  config: () => Config,
  log: () => Promise<Log>,
): Pick<
  Composition,
  "hasDatabase" | "withDatabase" | "findPoolerProblems" | "readMigrationPlan" | "loadEmptyDatabase"
> {
  return {
    hasDatabase: () => hasDatabase(config()),
    withDatabase: async (work, { create = false, migrates = false, asOwner = false } = {}) =>
      await withDatabase(config(), log, { create, migrates, asOwner }, work),
    findPoolerProblems: async (db) => {
      const { findPoolerProblems } = await import("./open-database.ts");
      return await findPoolerProblems(config(), db, await log());
    },
    readMigrationPlan: async () => {
      requireDatabase(config());
      const { readMigrationPlan } = await import("./open-database.ts");
      return await withProgress("Opening the database", readMigrationPlan(config(), await log()));
    },
    loadEmptyDatabase: async (applied, work) => {
      const { loadEmptyDatabase } = await import("./empty-database.ts");
      return await loadEmptyDatabase(config(), await log(), applied, work);
    },
  };
}

/** What commands need for the service of another machine. */
function remoteParts(
  config: () => Config,
): Pick<
  Composition,
  | "useService"
  | "isRemote"
  | "serviceUrl"
  | "useLogin"
  | "openServiceClient"
  | "openClientOf"
  | "openApiClient"
> {
  // `--url`, or the service of the last login; null: neither.
  let chosen: string | null = null;
  return {
    useService: (url) => {
      chosen = readServiceUrl(url);
    },
    serviceUrl: () => chosen ?? config().serviceUrl,
    useLogin: () => {
      const { serviceUrl, configDir } = config();
      if (chosen === null && serviceUrl === null && !hasDatabase(config())) chosen = currentLogin(configDir);
    },
    openClientOf: async (url, token) => await openClient(config(), url, token, "/operator/v1"),
    isRemote: () => isRemote(config(), chosen),
    openServiceClient: async () => await openServiceClient(config(), chosen),
    openApiClient: async () => await openApiClient(config(), chosen),
  };
}

/** A URL alone, which other programs may use too, is not enough: then a token is, or a login there, or the option. */
const isRemote = ({ serviceUrl, operatorToken, configDir }: Config, chosen: string | null): boolean =>
  chosen !== null ||
  (serviceUrl !== null && (operatorToken !== null || findLogin(configDir, serviceUrl) !== null));

function readServiceUrl(text: string): string {
  const url = readPlainUrl(text);
  if (url === undefined)
    throw new CommandFailed("--url must be an http or https URL without query.", EXIT_CODES.usage);
  return url;
}

async function openServiceClient(config: Config, chosen: string | null): Promise<ServiceClient> {
  const { serviceUrl, operatorToken, configDir } = config;
  const url = must(chosen ?? serviceUrl, "the service's URL");
  const token = operatorToken ?? findLogin(configDir, url)?.token;
  if (!token)
    throw new CommandFailed(
      `There is no operator token. Sign in: latchkey login --url ${url}; or set LATCHKEY_TOKEN to a token that an admin has created.`,
    );
  return await openClient(config, url, token, "/operator/v1");
}

async function openApiClient(config: Config, chosen: string | null): Promise<ServiceClient> {
  const { serviceUrl, apiKey, publicUrl, host, port } = config;
  if (apiKey === null)
    throw new CommandFailed(
      "There is no API key: set LATCHKEY_API_KEY. `latchkey keys create --account NAME --scope events` creates one.",
    );
  const url = chosen ?? serviceUrl ?? publicUrl ?? `http://${host}:${port}`;
  return await openClient(config, url, apiKey, "/api/v1");
}

async function openClient(
  { insecure }: Config,
  url: string,
  secret: Secret | null,
  root: "/operator/v1" | "/api/v1",
): Promise<ServiceClient> {
  if (isPlainPublic(url) && !insecure)
    throw new CommandFailed(
      `${url} is public and not encrypted: anyone on the path could read the token. Use https://, or set LATCHKEY_INSECURE=true to accept this.`,
    );
  const { ServiceClient: Client } = await import("#outbound/service-client.ts");
  return new Client(url, secret && (() => secret.reveal()), root);
}

/** `init` runs before there is a key, and does the same once it has created one. */
async function verifyRows({ signingKey }: Config, db: Database, log: Log): Promise<void> {
  if (signingKey === null) return;
  const [{ checkSigningKey }, { openSigning, readSigningKey }] = await Promise.all([
    import("#actions/keys/check-signing-key.ts"),
    import("#lib/signing.ts"),
  ]);
  await checkSigningKey(db, openSigning(readSigningKey(signingKey.reveal())), log);
}

async function openBrowsers(
  gate: Gate,
  { browser }: Config,
  log: Log,
  window: BrowserWindow | undefined,
): Promise<Browsers> {
  const { openBrowsers: open } = await import("#outbound/browser/browsers.ts");
  return open({ gate, settings: { ...browser, window }, log });
}

/** The window of `latchkey run --headed`. */
function windowOf(environment: Environment, slowMs: number | undefined): BrowserWindow | undefined {
  if (slowMs === undefined) return undefined;
  const display = readDisplay(environment);
  if (display !== null) return { environment: display, slowMs };
  throw new CommandFailed(
    "There is no display for a window (neither DISPLAY nor WAYLAND_DISPLAY is set). Run this in a desktop session, or with xvfb-run.",
    EXIT_CODES.usage,
  );
}

/** With the private keys, if they are here. */
async function openVault(config: Config, db: Database): Promise<Keyring> {
  const [{ prepareVault }, { readKeys }] = await Promise.all([
    import("#actions/vault/prepare-vault.ts"),
    import("#vault/key-source.ts"),
  ]);
  return await prepareVault(db, hasMasterKey(config) ? await readKeys(openKeySource(config)) : null);
}

/** The dependencies of the commands, from the settings in this environment. */
function compose(environment: Environment): Composition {
  // Read again at each use, because `init` creates the files that the settings name.
  const config = (): Config => readConfig(environment);
  let opened: Log | null = null;
  const log = async (): Promise<Log> => {
    const { openLog } = await import("#lib/log.ts");
    const { logLevel, logFormat } = config();
    return (opened ??= openLog({ level: logLevel, format: logFormat }));
  };
  return {
    config,
    ...remoteParts(config),
    ...databaseParts(config, log),
    openStore: async () => {
      const { openStore } = await import("./open-store.ts");
      return openStore(config());
    },
    openVault: async (db) => {
      if (!hasMasterKey(config())) throw missingKey("master", config().masterKeyFile);
      return await openVault(config(), db);
    },
    openSealer: async (db) => await openVault(config(), db),
    secretSources: () =>
      secretSources(fileSecrets(environment), (name) => readEnvironmentSecret(name, environment)),
    localSecret: (account, { name }) => {
      const given = fileSecrets(environment).get(account)?.get(name);
      return given === undefined
        ? { kind: "missing" }
        : { kind: "found", value: given.value.reveal(), origins: given.origins };
    },
    openEgressGate: async () => {
      const { openGate } = await import("#outbound/gate.ts");
      return openGate({ allow: config().egressAllow });
    },
    openBrowsers: async (gate, shown) =>
      await openBrowsers(gate, config(), await log(), windowOf(environment, shown?.slowMs)),
    keySource: () => openKeySource(config()),
    hasMasterKey: () => hasMasterKey(config()),
    loadNodeTypes: async () => {
      const files = readNodeFiles(environment);
      if (files.length === 0) return new Map();
      const { addNodeFiles } = await import("#nodes/registry.ts");
      return await addNodeFiles(files);
    },
    serve: async (roles, processes) => {
      guardProcess([...process.execArgv, ...nodeOptions(environment)], await log());
      const { startService } = await import("./assemble.ts");
      const service = await startService(config(), await log(), roles, environment, processes);
      // Now, because a process that is killed keeps nothing of what it has compiled.
      flushCompileCache();
      return service;
    },
    drainMs: () => config().drainMs,
    log,
    environmentSecret: (name) => readEnvironmentSecret(name, environment),
    foreignEnvironment: () => foreignEnvironment(environment),
  };
}

/** Runs one command line and returns its exit code. First removes the keys from the environment. */
export async function runCommandLine(arguments_: readonly string[]): Promise<number> {
  return await runProgram(compose(takeEnvironment()), arguments_);
}
