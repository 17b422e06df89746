import { join, resolve } from "node:path";
import type { S3Settings } from "#blobs/s3-failures.ts";
import { FAILPOINTS, parseFailpoints, type FailpointAction } from "#lib/failpoint.ts";
import { LOG_LEVELS, type LogLevel } from "#lib/log-level.ts";
import { Secret } from "#lib/secret.ts";
import { parseEgressAllow } from "#outbound/egress-allow.ts";
import type { BrowserSettings } from "#outbound/browser/browsers.ts";
import { parseTrustedProxies, type Network } from "#domain/client-address.ts";
import { limits } from "#domain/limits.ts";
import type { Quotas } from "#domain/quotas.ts";
import { isServiceVariable } from "#domain/service-variable.ts";
import { ExplainedError } from "#lib/explained-error.ts";
import { MAIL_SETTINGS, readMail, type MailConfig } from "./mail.ts";
import { BROWSER_SETTINGS, readBrowser } from "./browser.ts";
import { CLIENT_SECRETS_SETTING, readClientSecrets, type SecretsFile } from "./client-secrets.ts";
import { DATABASE_SETTINGS, readDatabase, type DatabaseSettings } from "./database.ts";
import { readKey, readMasterKeyPlace } from "./keys.ts";
import { OBJECT_STORE_SETTINGS, readObjectStore } from "./object-store.ts";
import { readSignIn, SIGN_IN_SETTINGS, type SignInSettings } from "./oidc.ts";
import { readPublicUrl, type PublicUrlSettings } from "./public-url.ts";
import { QUOTA_SETTINGS, readQuotas } from "./quotas.ts";
import { oneOf, type Checked, type Setting } from "./read-value.ts";
import { readRemote, REMOTE_SETTINGS, type RemoteSettings } from "./remote.ts";
import { hasHome, NO_HOME } from "./home.ts";
import { readWatching, WATCHING_SETTINGS, type WatchingSettings } from "./watching.ts";

/** All settings, from the environment. */
export interface Config extends DatabaseSettings, PublicUrlSettings, RemoteSettings, WatchingSettings {
  readonly host: string;
  readonly port: number;
  readonly dataDir: string;
  /** The key's text, or null when neither a value nor a file gives one. */
  readonly signingKey: Secret | null;
  readonly signingKeyFile: string;
  /** Only the variable's value. The file is read only by a process that opens sealed values. */
  readonly masterKey: Secret | null;
  readonly masterKeyFile: string;
  /** The AWS KMS key that wraps the file. null: the file is not wrapped. */
  readonly masterKeyKms: string | null;
  /** null: the folder `objects` of the data folder. */
  readonly objectStore: S3Settings | null;
  readonly signIn: SignInSettings;
  /** Null: no mail is sent to operators. */
  readonly mail: MailConfig | null;
  /** The proxies whose forwarding headers are trusted. */
  readonly trustedProxies: readonly Network[];
  readonly quotas: Quotas;
  readonly egressAllow: readonly string[];
  readonly browser: BrowserSettings;
  /** Paths of the operator's own node types. */
  readonly nodeFiles: readonly string[];
  readonly logLevel: LogLevel;
  readonly logFormat: "json" | "pretty";
  readonly workerConcurrency: number;
  readonly loginTimeoutMs: number;
  readonly databaseWaitMs: number;
  readonly drainMs: number;
  /** Empty except in fault tests. */
  readonly failpoints: readonly FailpointAction[];
  readonly clientSecrets: SecretsFile;
  /** Reads the variable that a document names (`client_secret_env`); null: it is not set. */
  readonly environmentSecret: (name: string) => Secret | null;
}

export const SETTINGS: readonly Setting[] = [
  {
    name: "LATCHKEY_HOST",
    type: "address",
    default: "127.0.0.1",
    description: "Address that the service listens on.",
  },
  {
    name: "LATCHKEY_PORT",
    type: "port",
    default: "8080",
    description: "Port that the service listens on. 0 takes any free one.",
  },
  {
    name: "LATCHKEY_PUBLIC_URL",
    type: "URL",
    default: "from host and port",
    description:
      "URL at which callers and end users reach the service; the beginning of every hosted and download URL.",
  },
  {
    name: "LATCHKEY_INSECURE",
    type: "true or false",
    default: "false",
    description:
      "If true, LATCHKEY_PUBLIC_URL may be http:// with a public name, although credentials, keys and sign-ins then cross the internet unencrypted.",
  },
  {
    name: "LATCHKEY_TRUSTED_PROXIES",
    type: "list of CIDR",
    default: "empty",
    description:
      "Reverse proxies whose X-Forwarded-For or Forwarded header is trusted, separated by commas; docs/reverse-proxy.md.",
  },
  {
    name: "LATCHKEY_DATA_DIR",
    type: "folder",
    default: "./.latchkey",
    description: "Data folder: embedded database, keys, stored objects. Relative to the working directory.",
  },
  ...REMOTE_SETTINGS,
  ...DATABASE_SETTINGS,
  {
    name: "LATCHKEY_SIGNING_KEY",
    type: "key",
    default: "from the file",
    description:
      "Signing key: the root of API-key hashes, hosted links and download URLs. Every role needs it.",
    isSecret: true,
  },
  {
    name: "LATCHKEY_SIGNING_KEY_FILE",
    type: "file",
    default: "signing.key in the data folder",
    description: "File that holds the signing key.",
  },
  {
    name: "LATCHKEY_MASTER_KEY",
    type: "key",
    default: "from the file",
    description:
      "Master key: the vault's private keys, in the format of the file. Only the worker role needs it; docs/keys.md.",
    isSecret: true,
  },
  {
    name: "LATCHKEY_MASTER_KEY_FILE",
    type: "file",
    default: "master.key in the data folder",
    description: "File that holds the master key. A process with only the api role never reads it.",
  },
  {
    name: "LATCHKEY_MASTER_KEY_KMS",
    type: "key id, alias or ARN",
    default: "unset: the file is not wrapped",
    description:
      "AWS KMS key that the master key's file is wrapped with. Region, credentials and endpoint are the AWS SDK's own settings.",
  },
  ...OBJECT_STORE_SETTINGS,
  ...SIGN_IN_SETTINGS,
  ...MAIL_SETTINGS,
  CLIENT_SECRETS_SETTING,
  ...QUOTA_SETTINGS,
  {
    name: "LATCHKEY_EGRESS_ALLOW",
    type: "list of CIDR or host:port",
    default: "empty",
    description:
      "Private addresses that Blueprints and logins may reach, separated by commas. Public ones need no entry.",
  },
  ...BROWSER_SETTINGS,
  {
    name: "LATCHKEY_NODE_FILES",
    type: "list of files",
    default: "empty",
    description:
      "Files with node types of your own, separated by commas, relative to the working directory; docs/custom-nodes.md.",
  },
  {
    name: "LATCHKEY_LOG_LEVEL",
    type: LOG_LEVELS.join(" | "),
    default: "info",
    description: "Lowest level of log lines that are written.",
  },
  {
    name: "LATCHKEY_LOG_FORMAT",
    type: "json | pretty",
    default: "pretty on a terminal, else json",
    description: "Format of the log lines, which go to standard error.",
  },
  ...WATCHING_SETTINGS,
  {
    name: "LATCHKEY_WORKER_CONCURRENCY",
    type: "1 to 1000",
    default: "20",
    description:
      "Runs that one worker process executes at once; up to twice as many when it takes over those of a dead worker.",
  },
  {
    name: "LATCHKEY_LOGIN_SECONDS",
    type: "1 to 600",
    default: String(limits.loginTimeoutMs / 1_000),
    description:
      "Time limit for one login of a run, not counting the wait for other logins with the same credential.",
  },
  {
    name: "LATCHKEY_DRAIN_SECONDS",
    type: "0 to 600",
    default: String(limits.drainMs / 1_000),
    description: "Longest wait for requests and runs in progress when the service is told to stop.",
  },
  {
    name: "LATCHKEY_DATABASE_WAIT_SECONDS",
    type: "0 to 600",
    default: "60",
    description:
      "How long `latchkey serve` waits at its start for a DATABASE_URL that does not answer, before it exits with code 1.",
  },
  {
    name: "LATCHKEY_FAILPOINTS",
    type: "list of name=kill, throw or delay",
    default: "empty",
    description:
      "For fault tests only: points at which the service kills itself, fails or hangs. Never set this in production.",
  },
];

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the environment with which the process was started, and removes secrets from `surroundings`, so that they are neither
 * inherited by a child process nor read by code that the service loads.
 */
export function takeEnvironment(surroundings: Record<string, string | undefined> = process.env): Environment {
  const taken = { ...surroundings };
  if (!hasHome()) surroundings["HOME"] = NO_HOME;
  for (const { name, isSecret } of SETTINGS)
    if (isSecret === true) Reflect.deleteProperty(surroundings, name);
  return taken;
}

/** Every problem of the environment at once, each with its remedy. */
export class ConfigError extends ExplainedError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(
      `The settings have ${problems.length === 1 ? "a problem" : `${problems.length} problems`}:\n${problems.map((problem) => `  ${problem}`).join("\n")}`,
    );
    this.problems = problems;
  }
}

/** The process can't start: the message says what is missing and what to do. */
export class StartRefused extends ExplainedError {}

/** The message for a key that is neither in a variable nor in a file. */
export function missingKey(which: "signing" | "master", file: string): StartRefused {
  return new StartRefused(
    `There is no ${which} key: ${file} does not exist and LATCHKEY_${which.toUpperCase()}_KEY is not set. ` +
      "Run `latchkey init` to create the data folder with its keys, or provide the key that belongs to this database.",
  );
}

/** The signing key's text. Throws StartRefused when there is none. */
export function requireSigningKey(config: Config): Secret {
  if (!config.signingKey) throw missingKey("signing", config.signingKeyFile);
  return config.signingKey;
}

const whole = (least: number, most: number) => (text: string) =>
  /^\d{1,6}$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined;

/** Reads the settings. An empty variable counts as unset; throws ConfigError for an invalid or unknown `LATCHKEY_*` variable. */
export function readConfig(environment: Environment, cwd: string = process.cwd()): Config {
  const problems: string[] = unknownNames(environment);
  const read = (name: string): string | undefined => environment[name]?.trim() || undefined;
  const checked: Checked = (name, parse, wants, fallback) => {
    const text = read(name);
    if (text === undefined) return fallback;
    const value = parse(text);
    if (value === undefined) problems.push(`${name} must be ${wants}.`);
    return value ?? fallback;
  };
  /** Returns milliseconds, like the fallback. */
  const seconds = (name: string, least: number, fallbackMs: number): number =>
    checked(name, whole(least, 600), `a number of seconds from ${least} to 600`, fallbackMs / 1_000) * 1_000;
  const dataDir = resolve(cwd, read("LATCHKEY_DATA_DIR") ?? ".latchkey");
  const signingKeyFile = resolve(cwd, read("LATCHKEY_SIGNING_KEY_FILE") ?? join(dataDir, "signing.key"));
  const masterKeyFile = resolve(cwd, read("LATCHKEY_MASTER_KEY_FILE") ?? join(dataDir, "master.key"));
  const config: Config = {
    host: checked(
      "LATCHKEY_HOST",
      (text) => (/^[^\s/]+$/.test(text) ? text : undefined),
      "a host name or address",
      "127.0.0.1",
    ),
    port: checked("LATCHKEY_PORT", whole(0, 65_535), "a port from 0 to 65535", 8_080),
    ...readPublicUrl(checked, problems),
    ...readRemote(read, cwd, checked, problems),
    dataDir,
    ...readDatabase(read, cwd, checked, problems),
    signingKey: readKey(environment, "LATCHKEY_SIGNING_KEY", signingKeyFile, problems),
    signingKeyFile,
    ...readMasterKeyPlace(environment, masterKeyFile, problems),
    objectStore: readObjectStore(read, checked, problems),
    signIn: readSignIn(read, cwd, checked, problems),
    mail: readMail(read, cwd, checked, problems),
    trustedProxies: readTrustedProxies(read("LATCHKEY_TRUSTED_PROXIES"), problems),
    quotas: readQuotas(checked),
    egressAllow: readEgressAllow(read("LATCHKEY_EGRESS_ALLOW"), problems),
    browser: readBrowser(checked),
    nodeFiles: readNodeFiles(environment, cwd),
    logLevel: checked("LATCHKEY_LOG_LEVEL", oneOf(LOG_LEVELS), `one of ${LOG_LEVELS.join(", ")}`, "info"),
    logFormat: checked(
      "LATCHKEY_LOG_FORMAT",
      oneOf(["json", "pretty"]),
      "json or pretty",
      process.stderr.isTTY ? "pretty" : "json",
    ),
    workerConcurrency: checked("LATCHKEY_WORKER_CONCURRENCY", whole(1, 1_000), "a number from 1 to 1000", 20),
    loginTimeoutMs: seconds("LATCHKEY_LOGIN_SECONDS", 1, limits.loginTimeoutMs),
    databaseWaitMs: seconds("LATCHKEY_DATABASE_WAIT_SECONDS", 0, 60_000),
    drainMs: seconds("LATCHKEY_DRAIN_SECONDS", 0, limits.drainMs),
    failpoints: checked(
      "LATCHKEY_FAILPOINTS",
      (text) => parseFailpoints(text) ?? undefined,
      FAILPOINT_FORM,
      [],
    ),
    ...readWatching(checked),
    clientSecrets: readClientSecrets(read, cwd, problems),
    environmentSecret: (name) => readEnvironmentSecret(name, environment),
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

const FAILPOINT_FORM = `a list of NAME=ACTION or NAME=ACTION:HIT, with the actions kill, throw, delay and the names ${FAILPOINTS.join(", ")}`;

/** Reads only this setting, for commands that need no other. Lists each file once. */
export function readNodeFiles(environment: Environment, cwd: string = process.cwd()): readonly string[] {
  const names = (environment["LATCHKEY_NODE_FILES"] ?? "").split(",").map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== "").map((name) => resolve(cwd, name)))];
}

/** Reads only this setting. Throws ConfigError. */
export function fileSecrets(environment: Environment, cwd: string = process.cwd()): SecretsFile {
  const problems: string[] = [];
  const secrets = readClientSecrets((name) => environment[name]?.trim() || undefined, cwd, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return secrets;
}

const OURS = /^(LATCHKEY_|DATABASE_((DIRECT|OWNER)_)?URL(_FILE)?$)/;
/** Where this machine's Chromium is, and how it runs here. */
const OF_MACHINE = /^LATCHKEY_BROWSER(_\w+)?$/;
/** The environment without the settings, except those that say what this machine has. */
export function foreignEnvironment(environment: Environment): Environment {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !OURS.test(name) || OF_MACHINE.test(name)),
  );
}

/** Options for Node that were passed in the environment. */
export function nodeOptions(environment: Environment): readonly string[] {
  return (environment["NODE_OPTIONS"] ?? "").split(/\s+/).filter((option) => option !== "");
}

/** Names that npm, the launcher and the tests set for themselves. */
const OWN_NAMES = ["LATCHKEY_CHROMIUM"];
const TEST_NAME = /^LATCHKEY_TEST_/;

function unknownNames(environment: Environment): string[] {
  const known = new Set([...SETTINGS.map((setting) => setting.name), ...OWN_NAMES]);
  return Object.keys(environment)
    .filter((name) => name.startsWith("LATCHKEY_") && !TEST_NAME.test(name))
    .filter((name) => !known.has(name) && environment[name])
    .map(
      (name) =>
        `${name} is not a setting. The settings are: ${SETTINGS.map((setting) => setting.name).join(", ")}.`,
    );
}

/**
 * Reads a secret that a document names by its environment variable: `client_secret_env` of a strategy. Null: the variable is not
 * set, or is one of the service's own, which no document may read.
 */
export function readEnvironmentSecret(name: string, environment: Environment): Secret | null {
  if (isServiceVariable(name)) return null;
  const text = environment[name]?.trim();
  return text === undefined || text === "" ? null : new Secret(text);
}

function readTrustedProxies(text: string | undefined, problems: string[]): readonly Network[] {
  const parsed = parseTrustedProxies(text ?? "");
  if (parsed.ok) return parsed.networks;
  for (const problem of parsed.problems) problems.push(`LATCHKEY_TRUSTED_PROXIES: ${problem}.`);
  return [];
}

function readEgressAllow(text: string | undefined, problems: string[]): readonly string[] {
  const parsed = parseEgressAllow(text ?? "");
  if (parsed.ok) return parsed.items;
  for (const problem of parsed.problems) problems.push(`LATCHKEY_EGRESS_ALLOW: ${problem}`);
  return [];
}
