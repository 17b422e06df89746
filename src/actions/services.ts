import type { BlobStore } from "#blobs/store.ts";
import type { Account } from "#db/accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunNews } from "#db/runs/run-notifier.ts";
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

/** What actions work with. Made once, in `service/assemble.ts`. */
export interface Services {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly signing: Signing;
  readonly vault: Vault;
  readonly log: Log;
  readonly tombstones: Tombstones;
  /** Of this process. */
  readonly buckets: TokenBuckets;
  readonly quotas: AccountQuotas;
  readonly passwords: Passwords;
  readonly operatorSignIn: OperatorSignIn;
  readonly refusedSignIns: RefusedSignIns;
  readonly news: RunNews;
  readonly runWatch: RunWatch;
  readonly operatorWatch: OperatorWatch;
  readonly gate: Gate;
  /** For strategies' documents alone: what an end user has typed is in scope there. */
  readonly loginExpressions: Evaluator;
  /** What a strategy's document refers to as its client's secret; for its login alone. */
  readonly clientSecret: (accountId: string, reference: SecretReference) => Promise<FoundSecret>;
  readonly secretSources: SecretSources;
  /** Where a request comes from, for what is counted and what is audited. */
  readonly clientOf: ClientOf;
  /** Without a trailing slash. */
  readonly publicUrl: () => string;
}

/** Those that one action works with. */
export type Needs<Name extends keyof Services> = Pick<Services, Name>;

/** The ways in for operators. */
export interface OperatorSignIn {
  readonly byPassword: boolean;
  /** null: there is no single sign-on. */
  readonly oidc: {
    readonly provider: OidcProvider;
    /** On the button. */
    readonly label: string;
    /** Our own second factor as well; else the provider answers for it. */
    readonly requireTotp: boolean;
  } | null;
}

/** Who calls: the first thing every action of the public API wants, so that none can be reached without it. */
export interface Caller {
  readonly keyId: string;
  /** null = every Blueprint of the account */
  readonly blueprintKeys: readonly string[] | null;
  /** null = everything */
  readonly scopes: readonly KeyScope[] | null;
  readonly account: Account;
}
