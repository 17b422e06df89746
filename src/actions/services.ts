import type { BlobStore } from "#blobs/store.ts";
import type { Account } from "#db/accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunChanges } from "#db/runs/run-notifier.ts";
import type { FoundSecret, SecretReference } from "#domain/account-secret.ts";
import type { AccountQuotas } from "./runs/account-quotas.ts";
import type { ClientOf } from "./keys/client-of.ts";
import type { Evaluator } from "#expressions/evaluator.ts";
import type { KeyScope } from "#domain/key-scope.ts";
import type { Log } from "#lib/log.ts";
import type { Passwords } from "#lib/password.ts";
import type { Signing } from "#lib/signing.ts";
import type { TokenBuckets } from "#lib/token-bucket.ts";
import type { Gate } from "#outbound/gate.ts";
import type { Vault } from "#vault/vault.ts";
import type { RefusedSignIns } from "./operators/refused-sign-ins.ts";
import type { OidcProvider } from "./operators/oidc-provider.ts";
import type { OperatorWatch } from "./operators/watch-changes.ts";
import type { SecretSources } from "./secrets/list-secret-problems.ts";
import type { Tombstones } from "./credentials/tombstones.ts";
import type { RunWatch } from "./runs/watch-runs.ts";
import type { EventWatch } from "./webhooks/watch-events.ts";

/** The dependencies of actions, created once, in `service/assemble.ts`. */
export interface Services {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly signing: Signing;
  readonly vault: Vault;
  readonly log: Log;
  readonly tombstones: Tombstones;
  /** State of this process. */
  readonly buckets: TokenBuckets;
  readonly quotas: AccountQuotas;
  readonly passwords: Passwords;
  readonly operatorSignIn: OperatorSignIn;
  readonly refusedSignIns: RefusedSignIns;
  readonly news: RunChanges;
  readonly runWatch: RunWatch;
  readonly eventWatch: EventWatch;
  readonly operatorWatch: OperatorWatch;
  readonly gate: Gate;
  /** Only for strategies' documents, where an end user's input is in scope. */
  readonly loginExpressions: Evaluator;
  /** Finds the client's secret that a strategy's document refers to. Only for its login. */
  readonly clientSecret: (accountId: string, reference: SecretReference) => Promise<FoundSecret>;
  readonly secretSources: SecretSources;
  /** The client address of a request, for rate limits and the audit log. */
  readonly clientOf: ClientOf;
  /** Without a trailing slash. */
  readonly publicUrl: () => string;
}

/** The services that one action uses. */
export type Needs<Name extends keyof Services> = Pick<Services, Name>;

/** The ways in which operators can sign in. */
export interface OperatorSignIn {
  readonly byPassword: boolean;
  /** null: single sign-on is not configured. */
  readonly oidc: {
    readonly provider: OidcProvider;
    /** On the button. */
    readonly label: string;
    /** Whether our own second factor is required as well; otherwise the provider is responsible for it. */
    readonly requireTotp: boolean;
  } | null;
}

/** The caller: the first parameter of every action of the public API, so that none can be called without authentication. */
export interface Caller {
  readonly keyId: string;
  /** null = every Blueprint of the account */
  readonly blueprintKeys: readonly string[] | null;
  /** null = everything */
  readonly scopes: readonly KeyScope[] | null;
  readonly account: Account;
}
