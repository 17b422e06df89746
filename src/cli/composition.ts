import type { SecretSources } from "#actions/secrets/list-secret-problems.ts";
import type { Quotas } from "#domain/quotas.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Database } from "#db/connection/pool.ts";
import type { FoundSecret, SecretReference } from "#domain/account-secret.ts";
import type { Log } from "#lib/log.ts";
import type { Secret } from "#lib/secret.ts";
import type { Gate } from "#outbound/gate.ts";
import type { KeySource } from "#vault/key-source.ts";
import type { Keyring, Vault } from "#vault/vault.ts";

/** Settings as far as commands look at them. */
export interface CommandConfig {
  readonly dataDir: string;
  readonly databaseUrl: Secret | null;
  readonly databaseOwnerUrl: Secret | null;
  readonly signingKey: Secret | null;
  /** Of the variable alone. */
  readonly masterKey: Secret | null;
  readonly masterKeyKms: string | null;
  readonly signingKeyFile: string;
  readonly masterKeyFile: string;
  readonly publicUrl: string | null;
  readonly quotas: Quotas;
  readonly host: string;
  readonly port: number;
}

/** What the composition root lends to the commands, which stand below it. */
export interface Composition {
  readonly config: () => CommandConfig;
  /** Whether there is a database to open. The embedded one is made by `init`. */
  hasDatabase(): boolean;
  /**
   * Opens the database for one command, and closes it after; the embedded one is started when it does not run. Refuses
   * when there is none yet, except with `create`. An older schema is refused, except with `migrates`.
   */
  withDatabase<T>(
    work: (db: Database) => Promise<T>,
    options?: { readonly create?: boolean; readonly migrates?: boolean },
  ): Promise<T>;
  /** The migrations that the database lacks, in order. Changes nothing. */
  readMigrationPlan(): Promise<readonly string[]>;
  /** The store of the objects, as the settings say. */
  openStore(): Promise<BlobStore>;
  /** Opens the vault as `serve` would. Throws when the keys don't fit the database. */
  openVault(db: Database): Promise<Keyring>;
  /** Where the settings say that the master key is, whether or not it is there. */
  keySource(): KeySource;
  hasMasterKey(): boolean;
  /**
   * Loads the operator's own node types, by the settings; a command that reads Blueprints does it first. Gives the types by file.
   * Throws when a file is wrong.
   */
  loadNodeTypes(): Promise<ReadonlyMap<string, string>>;
  /** The way out to targets, as the settings allow it. */
  openEgressGate(): Promise<Gate>;
  /** `lost` ends when the service can't go on: with why. */
  serve(roles: readonly ("api" | "worker")[]): Promise<{
    readonly url: string;
    readonly localUrl: string;
    readonly lost: Promise<Error>;
    stop(): Promise<void>;
  }>;
  readonly drainMs: () => number;
  readonly log: () => Promise<Log>;
  /** What seals, and opens where the master key is at hand: for a command that only gives a secret. */
  openSealer(db: Database): Promise<Vault>;
  /** Secrets of accounts that come by the settings. Throws when their file is wrong. */
  secretSources(): SecretSources;
  /** What an author's own run finds for a login: in the file of the settings. */
  localSecret(account: string, reference: SecretReference): FoundSecret;
  /** An environment variable that a document names. */
  readonly environmentSecret: (name: string) => Secret | null;
  /** The environment without any setting of ours: for a program that has settings of its own. */
  readonly foreignEnvironment: () => Readonly<Record<string, string | undefined>>;
  /** Folder of the program: examples, migrations. */
  readonly root: string;
}
