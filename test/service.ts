import { mkdirSync, mkdtempSync, rmSync, writeFileSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { applyConfig } from "#actions/config/apply-config.ts";
import { checkSigningKey } from "#actions/keys/check-signing-key.ts";
import { createApiKey } from "#actions/keys/create-api-key.ts";
import { createFirstOperator } from "#actions/operators/create-first-operator.ts";
import { prepareVault } from "#actions/vault/prepare-vault.ts";
import { formatProblem } from "#domain/config-problem.ts";
import type { KeyScope } from "#domain/key-scope.ts";
import { guardRows } from "#db/signing/signed-rows.ts";
import { limits } from "#domain/limits.ts";
import { generateSigningKey, openSigning, readSigningKey, type Signing } from "#lib/signing.ts";
import { openLog } from "#lib/log.ts";
import { startService, type Role } from "#service/assemble.ts";
import { readConfig, requireSigningKey, type Config } from "#service/settings/settings.ts";
import { openKeySource } from "#service/open-key-source.ts";
import { readKeys } from "#vault/key-source.ts";
import { generateMasterKey } from "#vault/master-key.ts";
import { createTestDatabase, migrateAll, type TestDatabase } from "./database.ts";
import {
  foreignEnvironment,
  needsOwnProcess,
  runCommand,
  runLatchkey,
  startProcess,
  type CommandResult,
  type ServiceProcess,
  type ServiceProgram,
} from "./service-process.ts";

export type { CommandResult, ServiceProcess } from "./service-process.ts";

/** A service that answers at `url`. */
export interface RunningService {
  readonly url: string;
  /** Stops it as SIGTERM does: requests under way end, runs are handed back. */
  end(): Promise<unknown>;
}

/** What `createKey` may be told besides the account. */
export interface KeyOptions {
  readonly name?: string;
  readonly blueprints?: readonly string[];
  readonly scopes?: readonly KeyScope[];
  readonly lifetimeMs?: number;
  readonly isTest?: boolean;
}

/** A whole installation: a data folder and a database of its own, and the services that run on them. */
export interface Installation {
  readonly database: TestDatabase;
  readonly dataFolder: string;
  readonly environment: Record<string, string>;
  /** Runs `latchkey …` to its end, in another process. */
  command(...arguments_: string[]): Promise<CommandResult>;
  /** Applies documents given as YAML texts; throws with the problems when they are refused. */
  apply(...documents: string[]): Promise<void>;
  /** What `latchkey apply` says against documents, each as `LINE:COLUMN: …`; empty when it takes them. */
  refusals(...documents: string[]): Promise<readonly string[]>;
  /** A new API key's text. */
  createKey(account: string, options?: KeyOptions): Promise<string>;
  /**
   * Starts a service in the test's own process, with the parts and settings of `latchkey serve`. A test that kills it, stops it
   * by a signal, measures it, arms fail-points or wants the command line takes `serveProcess`.
   */
  serve(extra?: Record<string, string>, roles?: readonly Role[]): Promise<RunningService>;
  /** Starts `latchkey serve …` as a process of its own. */
  serveProcess(
    extra?: Record<string, string>,
    roles?: readonly Role[],
    processes?: number,
  ): Promise<ServiceProcess>;
  /** Everything that any service or command of this installation has logged so far. */
  logs(): string;
}

/** Longest wait for requests under way when a service of a test ends, unless the test says otherwise. */
const DRAIN_SECONDS = "1";

/**
 * Makes an installation as `latchkey init` does; the disposer ends its services and removes all of it. With another checkout's
 * `program`, that one makes it, in a database that is empty; `startProcess` serves it by that program or this one.
 */
export async function install(
  environment: Record<string, string> = {},
  given: TestDatabase | null = null,
  { program }: { readonly program?: ServiceProgram | undefined } = {},
): Promise<Installation & AsyncDisposable> {
  const database = given ?? (await createTestDatabase());
  if (given !== null && program === undefined) await migrateAll(given.db);
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  const all = {
    DATABASE_URL: database.connectionString,
    LATCHKEY_DATA_DIR: join(folder, "data"),
    LATCHKEY_PORT: "0",
    LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
    LATCHKEY_LOG_LEVEL: "debug",
    LATCHKEY_LOG_FORMAT: "json",
    ...environment,
  };
  let logged = "";
  const log = (text: string): void => {
    logged += text;
  };
  const running = new Set<{ end(signal?: "SIGKILL"): Promise<unknown> }>();
  const keep = <Service extends RunningService>(service: Service): Service => {
    running.add(service);
    return service;
  };
  const needsProcess =
    all.DATABASE_URL !== database.connectionString || needsOwnProcess(environment) || program !== undefined;
  const ways =
    program === undefined
      ? waysOf(all, database, folder, log)
      : byCommands(folder, log, async (words) => await runLatchkey(words, all, { program, folder }));
  await ways.init();
  // What the test itself reads and writes is verified and signed as the service's is.
  if (needsProcess)
    guardRows(database.db, openSigning(readSigningKey(requireSigningKey(readConfig(all)).reveal())), null);
  return {
    ...ways,
    database,
    dataFolder: all.LATCHKEY_DATA_DIR,
    environment: all,
    command: async (...arguments_) => {
      const result = await runCommand(arguments_, all);
      log(result.stderr);
      return result;
    },
    apply: async (...texts) => {
      const problems = await ways.refusals(...texts);
      if (problems.length > 0) throw new Error(`apply was refused:\n${problems.join("\n")}`);
      // A service that runs may know the account as it was for that long.
      if (running.size > 0) await sleep(limits.callerFreshMs);
    },
    serve: async (extra = {}, roles = ["api", "worker"]) => {
      const settings = { ...all, ...extra };
      if (!needsProcess) return keep(await startHere(settings, roles, log));
      return keep(await startProcess(settings, roles, log));
    },
    serveProcess: async (extra = {}, roles = ["api", "worker"], processes = 1) =>
      keep(await startProcess({ ...all, ...extra }, roles, log, { processes })),
    logs: () => logged,
    [Symbol.asyncDispose]: async () => {
      for (const service of running) await service.end("SIGKILL");
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Ways extends Pick<Installation, "refusals" | "createKey"> {
  init(): Promise<void>;
}

/** By actions what can be: not with another database, and not what has settings of a process to work with. */
function waysOf(
  environment: Readonly<Record<string, string>>,
  database: TestDatabase,
  folder: string,
  log: (text: string) => void,
): Ways {
  const commands = byCommands(folder, log, async (words) => await runCommand(words, environment));
  const { LATCHKEY_NODE_FILES: nodeFiles = "", ...others } = environment;
  if (environment["DATABASE_URL"] !== database.connectionString || needsOwnProcess(others)) return commands;
  const actions = byActions(environment, database);
  // Only documents have node types in them.
  return nodeFiles === "" ? actions : { ...actions, refusals: commands.refusals };
}

/** Set-up by the actions that the commands call: no process is started. */
function byActions(environment: Readonly<Record<string, string>>, { db }: TestDatabase): Ways {
  const config = (): Config => readConfig(environment);
  const signing = (): Signing => openSigning(readSigningKey(requireSigningKey(config()).reveal()));
  return {
    init: async () => {
      const { dataDir, signingKeyFile, masterKeyFile } = config();
      mkdirSync(dataDir, { recursive: true, mode: 0o700 });
      writeFileSync(signingKeyFile, `${generateSigningKey()}\n`, { mode: 0o600 });
      writeFileSync(masterKeyFile, generateMasterKey().fileText, { mode: 0o600 });
      await checkSigningKey(db, signing());
      await prepareVault(db, await readKeys(openKeySource(config())));
      await createFirstOperator(db, signing(), "admin@localhost");
    },
    refusals: async (...texts) => {
      const outcome = await applyConfig(db, signing(), [{ file: "f", text: texts.join("\n---\n") }]);
      return outcome.ok ? [] : outcome.problems.map((problem) => formatProblem(problem).slice("f:".length));
    },
    createKey: async (account, options = {}) => {
      const { name = "", blueprints = null, scopes = null, lifetimeMs = null, isTest = false } = options;
      const request = { account, name, blueprintKeys: blueprints, scopes, lifetimeMs, isTest };
      return (await createApiKey(db, signing(), request)).key;
    },
  };
}

/** Set-up by the commands, for an installation whose settings a process alone can be given. */
function byCommands(
  folder: string,
  log: (text: string) => void,
  command: (words: readonly string[]) => Promise<CommandResult>,
): Ways {
  const run = async (...arguments_: string[]): Promise<CommandResult> => {
    const result = await command(arguments_);
    log(result.stderr);
    return result;
  };
  const checked = async (...arguments_: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(...arguments_);
    if (code !== 0) throw new Error(`latchkey ${arguments_.join(" ")} ended with ${code}:\n${stderr}`);
    return stdout;
  };
  let documents = 0;
  return {
    init: async () => void (await checked("init")),
    refusals: async (...texts) => {
      const file = join(folder, `documents-${documents++}.yaml`);
      writeFileSync(file, texts.join("\n---\n"));
      const { code, stderr } = await run("apply", "-f", file);
      const lines = stderr.split("\n").filter((line) => line.startsWith(`${file}:`));
      if ((code === 0) !== (lines.length === 0)) throw new Error(`apply ended with ${code}:\n${stderr}`);
      return lines.map((line) => line.slice(file.length + 1));
    },
    createKey: async (account, { name = "", blueprints, scopes, lifetimeMs, isTest = false } = {}) => {
      const options = [
        ...(blueprints === undefined ? [] : ["--blueprints", blueprints.join(",")]),
        ...(scopes === undefined ? [] : ["--scope", scopes.join(",")]),
        ...(lifetimeMs === undefined ? [] : ["--expires", `${lifetimeMs}ms`]),
        ...(isTest ? ["--test"] : []),
      ];
      const line = await checked(
        "keys",
        "create",
        "--account",
        account,
        "--name",
        name,
        "--json",
        ...options,
      );
      return (JSON.parse(line) as { key: string }).key;
    },
  };
}

async function startHere(
  environment: Readonly<Record<string, string>>,
  roles: readonly Role[],
  log: (text: string) => void,
): Promise<RunningService> {
  const settings = { ...foreignEnvironment(), LATCHKEY_DRAIN_SECONDS: DRAIN_SECONDS, ...environment };
  const config = readConfig(settings);
  if (config.failpoints.length > 0)
    throw new Error("Fail-points are armed for a whole process: use serveProcess.");
  const { logLevel, logFormat } = config;
  const service = await startService(
    config,
    openLog({ level: logLevel, format: logFormat }, { write: log }),
    roles,
    settings,
  );
  return { url: service.url, end: async () => await service.stop() };
}

/** An example document with the portal's origin replaced by the real one. */
export function exampleDocument(path: string, portalUrl: string): string {
  const file = fileURLToPath(new URL(`../examples/${path}`, import.meta.url));
  return readFileSync(file, "utf8").replaceAll("http://127.0.0.1:4600", portalUrl);
}
