import type { SecretSources } from "#actions/secrets/list-secret-problems.ts";
import type { Quotas } from "#domain/quotas.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Database } from "#db/connection/pool.ts";
import type { FoundSecret, SecretReference } from "#domain/account-secret.ts";
import type { Log } from "#lib/log.ts";
import type { Secret } from "#lib/secret.ts";
import type { Browsers } from "#outbound/browser/browsers.ts";
import type { Gate } from "#outbound/gate.ts";
import type { ServiceClient } from "#outbound/service-client.ts";
import type { KeySource } from "#vault/key-source.ts";
import type { Keyring, Vault } from "#vault/vault.ts";

/** The settings that commands use. */
export interface CommandConfig {
  readonly dataDir: string;
  readonly databaseUrl: Secret | null;
  readonly databaseOwnerUrl: Secret | null;
  readonly signingKey: Secret | null;
  /** Only the variable's value. */
  readonly masterKey: Secret | null;
  readonly masterKeyKms: string | null;
  readonly signingKeyFile: string;
  readonly apiKey: Secret | null;
  /** The folder with what `latchkey login` keeps; null: this user has none. */
  readonly configDir: string | null;
  readonly masterKeyFile: string;
  readonly publicUrl: string | null;
  readonly quotas: Quotas;
  readonly host: string;
  readonly port: number;
}

/** What the composition root provides to the commands, which are below it in the layers. */
export interface Composition {
  readonly config: () => CommandConfig;
  /** `--url`: takes precedence over LATCHKEY_URL. Throws CommandFailed for another text. */
  useService(url: string): void;
  /** Whether commands work on the service of another machine. */
  isRemote(): boolean;
  /** The service that is named or was chosen; null: none. */
  serviceUrl(): string | null;
  /** Chooses the service of the last `latchkey login`, if no service is named and this machine has no installation. */
  useLogin(): void;
  /** A client of that service. Throws CommandFailed without a token. The caller must close it. */
  openServiceClient(): Promise<ServiceClient>;
  /** A client of the service at this URL with this token; null: for operations that need none. The caller must close it. */
  openClientOf(url: string, token: Secret | null): Promise<ServiceClient>;
  /**
   * A client of the public API, of the service of another machine or of this one. Throws CommandFailed without an API key. The caller
   * must close it.
   */
  openApiClient(): Promise<ServiceClient>;
  /** Whether there is a database to open. `init` creates the embedded one. */
  hasDatabase(): boolean;
  /**
   * Opens the database for one command and closes it afterwards; starts the embedded one when it is not running. Throws when there is
   * no database yet, unless `create` is set, and when the schema is older, unless `migrates` is set. `asOwner`: as the owner of the
   * tables, who may do what the service must not.
   */
  withDatabase<T>(
    work: (db: Database) => Promise<T>,
    options?: { readonly create?: boolean; readonly migrates?: boolean; readonly asOwner?: boolean },
  ): Promise<T>;
  /** Why the addresses of the database don't suffice for `serve`, each with its remedy. */
  findPoolerProblems(db: Database): Promise<readonly string[]>;
  /** The migrations that the database lacks, in order. Changes nothing. */
  readMigrationPlan(): Promise<readonly string[]>;
  /**
   * Gives an empty database the schema of these migrations, for `work` to load rows into it as the owner, and then this version's schema.
   * Throws, and has changed nothing, if the database has rows or this version does not have the migrations.
   */
  loadEmptyDatabase<T>(
    applied: readonly { readonly name: string; readonly sha256: string }[],
    work: (owner: Database) => Promise<T>,
  ): Promise<T>;
  /** Opens the object store that the settings name. */
  openStore(): Promise<BlobStore>;
  /** Opens the vault as `serve` would. Throws when the keys don't fit the database. */
  openVault(db: Database): Promise<Keyring>;
  /** Where the master key should be according to the settings, whether or not it exists. */
  keySource(): KeySource;
  hasMasterKey(): boolean;
  /**
   * Loads the operator's own node types. A command that reads Blueprints calls this first. Returns the types by file. Throws when a
   * file is invalid.
   */
  loadNodeTypes(): Promise<ReadonlyMap<string, string>>;
  /** Opens the egress gate with the settings' rules. */
  openEgressGate(): Promise<Gate>;
  /** Browsers by the settings, behind this gate; `shown`: in a window, with a pause before each action. The caller must close them. */
  openBrowsers(gate: Gate, shown?: { readonly slowMs: number }): Promise<Browsers>;
  /** `processes`: for the api role. `lost` resolves, with the reason, when the service can't continue. */
  serve(
    roles: readonly ("api" | "worker")[],
    processes?: number,
  ): Promise<{
    readonly url: string;
    readonly localUrl: string;
    readonly lost: Promise<Error>;
    stop(): Promise<void>;
  }>;
  readonly drainMs: () => number;
  readonly log: () => Promise<Log>;
  /** Seals, and opens where the master key is available: for commands that only set a secret. */
  openSealer(db: Database): Promise<Vault>;
  /** Account secrets from the settings. Throws when their file is invalid. */
  secretSources(): SecretSources;
  /** Finds a secret for a local run's login in the file that the settings name. */
  localSecret(account: string, reference: SecretReference): FoundSecret;
  /** An environment variable that a document names. */
  readonly environmentSecret: (name: string) => Secret | null;
  /** The environment without our settings, except those of this machine's Chromium: for a program that has its own. */
  readonly foreignEnvironment: () => Readonly<Record<string, string | undefined>>;
}
