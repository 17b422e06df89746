import type { BlobStore } from "#blobs/store.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunChanges } from "#db/runs/run-notifier.ts";
import type { FoundSecret, SecretReference } from "#domain/account-secret.ts";
import type { Evaluator } from "#expressions/evaluator.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { Random } from "#lib/random.ts";
import type { Browsers } from "#outbound/browser/browsers.ts";
import type { Gate } from "#outbound/gate.ts";
import type { Mailer } from "#outbound/mailer.ts";
import type { Vault } from "#vault/vault.ts";
import type { HandleMac } from "./redaction/handles.ts";
import type { LiveViews } from "./live-views.ts";
import type { LoginTurns } from "./login/login-turns.ts";
import type { Paces } from "./waiting/paces.ts";
import type { SelfFence } from "./self-fence.ts";

/** The dependencies of the engine. Created once per worker process, in `service/assemble.ts`. */
export interface EngineServices {
  readonly db: Database;
  readonly news: RunChanges;
  readonly blobs: BlobStore;
  readonly vault: Vault;
  readonly audit: AuditKeys;
  readonly handleMac: HandleMac;
  readonly gate: Gate;
  readonly browsers: Browsers;
  readonly fence: SelfFence;
  readonly loginTurns: LoginTurns;
  readonly paces: Paces;
  readonly liveViews: LiveViews;
  /** For Blueprints. */
  readonly expressions: Evaluator;
  /** Only for logins: no author's expression ever shares a thread with a secret. */
  readonly loginExpressions: Evaluator;
  /** Finds the client secret that a strategy refers to; only for its login. */
  readonly clientSecret: (accountId: string, reference: SecretReference) => Promise<FoundSecret>;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  /** The folder for temporary files of runs. */
  readonly scratchFolder: string;
  /** Null: no mail is sent to operators. */
  readonly mailer: Mailer | null;
  /** Where the dashboard is. */
  readonly publicUrl: () => string;
  readonly loginTimeoutMs: number;
}
