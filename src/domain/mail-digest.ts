import type { OperatorEventType } from "./webhook.ts";

export interface Digest {
  readonly events: readonly {
    /** Slug; null: of the installation. */
    readonly account: string | null;
    readonly type: OperatorEventType;
    readonly total: number;
  }[];
  /** What waits now, in all accounts. */
  readonly waiting: {
    readonly reviews: number;
    readonly writes: number;
    readonly lockedCredentials: number;
    readonly deadWebhooks: number;
  };
  readonly publicUrl: string;
}

/** What one is called, what several are called, and the page that has them. */
const WORDS: Readonly<Record<OperatorEventType, readonly [one: string, several: string, page: string]>> = {
  "operator.review_waiting": ["run waits for a review", "runs wait for a review", "reviews"],
  "operator.write_uncertain": ["uncertain write", "uncertain writes", "writes"],
  "operator.credential_locked": ["credential locked", "credentials locked", "credentials"],
  "operator.webhook_disabled": ["webhook endpoint disabled", "webhook endpoints disabled", "webhooks"],
};

const count = (total: number, type: OperatorEventType): string =>
  `${total} ${WORDS[type][total === 1 ? 0 : 1]}`;

/** Accounts that are told one by one. */
const ACCOUNTS_MAX = 50;

/** A mail's subject and text: counts, names of accounts and links. */
export function describeDigest({ events, waiting, publicUrl }: Digest): {
  readonly subject: string;
  readonly text: string;
} {
  const types = (Object.keys(WORDS) as OperatorEventType[]).map(
    (type) =>
      [type, events.filter((each) => each.type === type).reduce((sum, { total }) => sum + total, 0)] as const,
  );
  const subject = types.flatMap(([type, total]) => (total === 0 ? [] : [count(total, type)])).join(", ");
  const accounts = [...new Set(events.map(({ account }) => account))];
  const parts = accounts
    .slice(0, ACCOUNTS_MAX)
    .map((account) =>
      [
        account ?? "The installation",
        ...events
          .filter((each) => each.account === account)
          .flatMap(({ type, total }) => [`  ${count(total, type)}`, `  ${linkTo(publicUrl, type, account)}`]),
      ].join("\n"),
    );
  const others = accounts.length - ACCOUNTS_MAX;
  const now = `In all there are now ${count(waiting.reviews, "operator.review_waiting").replace(/ waits? for a review/, " waiting for a review")}, ${count(waiting.writes, "operator.write_uncertain")}, ${count(waiting.lockedCredentials, "operator.credential_locked")} and ${count(waiting.deadWebhooks, "operator.webhook_disabled")}.`;
  return {
    subject: `Latchkey: ${subject}`,
    text: [
      `New since the last mail from ${publicUrl}:`,
      ...parts,
      ...(others > 0 ? [`and ${others} more accounts.`] : []),
      now,
      "",
    ].join("\n\n"),
  };
}

const linkTo = (publicUrl: string, type: OperatorEventType, account: string | null): string =>
  `${publicUrl}/dashboard/${WORDS[type][2]}${account === null ? "" : `?account=${encodeURIComponent(account)}`}`;
