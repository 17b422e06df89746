import type { Services } from "#actions/services.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import type { Keyring } from "#vault/vault.ts";
import type { Scene } from "./scene.ts";

/** What the product's functions are given here. */
export type Parts = Pick<
  Services,
  "db" | "signing" | "log" | "news" | "buckets" | "blobs" | "tombstones" | "quotas" | "publicUrl"
> & {
  readonly vault: Keyring;
  /** Of another primary key. */
  readonly nextVault: Keyring;
  readonly audit: AuditKeys;
  readonly scene: Scene;
};

/** One entry of the table. */
export interface Transaction {
  readonly name: string;
  /** The functions of the product that open it, as `file#function`; none: it is a statement by itself. */
  readonly opens: readonly string[];
  readonly run: (parts: Parts) => Promise<unknown>;
  /** One of its statements takes several runs. */
  readonly takesSeveral?: boolean;
  /** Why its caller may be told that a lock did not come in time. */
  readonly mayBeLockedOut?: string;
}

/** As the command line acts. */
export const OPERATOR = { kind: "cli" } as const;
