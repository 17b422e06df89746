/** A proposal that waits for admins: documents to apply, or credentials to bind to other origins. */
export const PROPOSAL_KINDS = ["documents", "rebinding"] as const;
export type ProposalKind = (typeof PROPOSAL_KINDS)[number];

export const PROPOSAL_STATUSES = ["open", "confirmed", "applied", "discarded", "expired", "stale"] as const;
export type ProposalStatus = (typeof PROPOSAL_STATUSES)[number];

/**
 * `confirmed`: for a rebinding, which is executed by a process with the master key. `open` to `open` is a confirmation that is
 * not the last.
 */
export const PROPOSAL_TRANSITIONS: Readonly<Record<ProposalStatus, readonly ProposalStatus[]>> = {
  open: ["open", "confirmed", "applied", "discarded", "expired", "stale"],
  confirmed: ["applied", "discarded", "expired"],
  applied: [],
  discarded: [],
  expired: [],
  stale: [],
};

/** How many admins must agree. */
export const ADMINS_WANTED = 2;

/** Why a change needs two admins. */
export interface Need {
  readonly kind: "account" | "strategy" | "blueprint";
  /** Slug. */
  readonly account: string;
  readonly id: string;
  /** `unverified`: this installation did not write the version in force, so all of it counts as changed. */
  readonly why: "origins" | "login" | "turned_off" | "unverified" | "rebinding";
  /** The origins that credentials may then be sent to as well. */
  readonly origins: readonly string[];
  /** Connected credentials of the strategy. */
  readonly credentials: number;
}

/** A document to apply. */
export interface ProposedDocument {
  readonly kind: Need["kind"];
  /** Slug. */
  readonly account: string;
  readonly id: string;
  /** JSON of the version in force; null: there was none. */
  readonly before: string | null;
  /** JSON. */
  readonly after: string;
}

/** A credential to rebind. */
export interface ProposedRebinding {
  readonly id: string;
  readonly strategyId: string;
  /** null: no origins are sealed into it yet. */
  readonly before: readonly string[] | null;
  readonly after: readonly string[];
}

export type ProposalContent = { readonly needs: readonly Need[] } & (
  | { readonly kind: "documents"; readonly documents: readonly ProposedDocument[] }
  | { readonly kind: "rebinding"; readonly credentials: readonly ProposedRebinding[] }
);

/** Describes the need in a sentence for people. */
export function describeNeed({ kind, account, id, why, origins, credentials }: Need): string {
  const name = kind === "account" ? `account ${id}` : `${kind} ${account}/${id}`;
  const connected =
    kind !== "strategy"
      ? ""
      : ` (${credentials === 1 ? "one credential is" : `${credentials} credentials are`} connected)`;
  switch (why) {
    case "origins":
      return `The ${name} adds ${origins.join(", ")}${connected}.`;
    case "login":
      return `The login of ${name} changes${connected}.`;
    case "turned_off":
      return `The ${name} turns \`two_person\` off.`;
    case "unverified":
      return `The current version of ${name} does not verify, so all of it counts as changed${connected}.`;
    case "rebinding":
      return `${credentials === 1 ? "One credential" : `${credentials} credentials`} of ${name} would be bound to other origins${origins.length === 0 ? "" : `: ${origins.join(", ")} would be added`}.`;
  }
}
