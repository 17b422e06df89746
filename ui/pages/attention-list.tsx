import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";
import { failureName, withoutLockRemedy } from "#domain/labels/states.ts";
import { listRuns, listWebhooks } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { Overview } from "../parts/answers.ts";
import { Mark } from "../parts/run-status.tsx";
import { shortId } from "../parts/short-id.ts";
import { Time } from "../parts/time.tsx";
import { describeDeath, isDead } from "./webhook-death.ts";

/** Whose it is, why in one sentence, and where to go; null: this role may not go there. */
export interface AttentionItem {
  readonly key: string;
  readonly kind: readonly [tone: "bad" | "waiting", name: string];
  readonly of: string;
  readonly beside?: string | undefined;
  readonly why: string;
  readonly at?: string | undefined;
  readonly to: string | null;
}

/** Failed runs. */
const SHOWN = 3;
const count = (number: number, one: string, many: string): string => `${number} ${number === 1 ? one : many}`;

/** What needs attention besides reviews, in one form. */
export function useAttention(overview: Overview | undefined): readonly AttentionItem[] {
  const { may } = useSignedIn();
  const failed = useFailedRuns(overview);
  const dead = useDeadEndpoints(overview?.needs_people.dead_webhooks ?? 0);
  if (overview === undefined) return failed;
  const { needs_people: people } = overview;
  const writes: AttentionItem = {
    key: "writes",
    kind: ["waiting", "Decide"],
    of: count(people.writes, "uncertain write", "uncertain writes"),
    why: "It is not known whether the target has carried them out.",
    to: "/writes",
  };
  const proposals: AttentionItem = {
    key: "proposals",
    kind: ["waiting", "Confirm"],
    of: count(people.proposals, "proposal", "proposals"),
    why: "A second admin has to confirm the change.",
    to: may("config.read") ? "/proposals" : null,
  };
  return [
    ...(people.writes > 0 ? [writes] : []),
    ...(people.proposals > 0 ? [proposals] : []),
    ...lockedLogins(overview, may("credential.read")),
    ...dead,
    ...failed,
  ];
}

function lockedLogins(overview: Overview, mayRead: boolean): readonly AttentionItem[] {
  return overview.failing_logins
    .filter(({ locked }) => locked > 0)
    .map(({ account, strategy, locked }) => ({
      key: `${account} ${strategy}`,
      kind: ["bad", "Locked"],
      of: strategy,
      beside: account,
      why: `${count(locked, "credential is", "credentials are")} locked, because the target rejected the logins.`,
      to: mayRead ? `/strategies/${account}/${strategy}?tab=credentials` : null,
    }));
}

function useDeadEndpoints(dead: number): readonly AttentionItem[] {
  const mayRead = useSignedIn().may("webhook.read");
  const webhooks = useRead(listWebhooks, { query: { account: undefined } }, { enabled: mayRead && dead > 0 });
  if (!mayRead && dead > 0)
    return [
      {
        key: "dead",
        kind: ["bad", "Disabled"],
        of: count(dead, "webhook endpoint", "webhook endpoints"),
        why: "Disabled, because of failures.",
        to: null,
      },
    ];
  return (webhooks.data?.items ?? []).filter(isDead).map((webhook) => ({
    key: webhook.id,
    kind: ["bad", "Disabled"],
    of: webhook.url,
    beside: webhook.account ?? undefined,
    why: `This endpoint is disabled: ${describeDeath(webhook)}.`,
    at: webhook.disabled_at ?? undefined,
    to: `/webhooks/${webhook.id}`,
  }));
}

/** The newest of the hours that the page shows. */
function useFailedRuns(overview: Overview | undefined): readonly AttentionItem[] {
  const since = overview?.hours[0]?.at;
  const hasFailed = overview?.hours.some(({ failed }) => failed > 0) ?? false;
  const runs = useRead(
    listRuns,
    { query: { status: "failed", since, limit: SHOWN } },
    { live: true, enabled: hasFailed },
  );
  return (runs.data?.items ?? []).map((run) => ({
    key: run.id,
    kind: ["bad", "Failed"],
    of: run.name ?? (run.blueprint === null ? "Test login" : shortId(run.id)),
    beside: [...Object.values(run.metadata), run.blueprint, run.account].filter(Boolean).join(" · "),
    why: `${run.failure === null ? "Failed" : failureName(run.failure)}${run.failure_detail === null ? "." : `: ${withoutLockRemedy(run.failure_detail)}`}`,
    at: run.created_at,
    to: `/runs/${run.id}`,
  }));
}

export function AttentionList({ items }: { readonly items: readonly AttentionItem[] }) {
  if (items.length === 0) return null;
  return (
    <ul className="plain-list rows-card">
      {items.map(({ key, kind: [tone, name], of, beside, why, at, to }) => (
        <li key={key} className="row-link kinded">
          <Text size="sm" component="div">
            <Mark tone={tone}>{name}</Mark>
          </Text>
          <div>
            <Text size="sm" className="any-break">
              {to === null ? (
                <b>{of}</b>
              ) : (
                <Anchor component={Link} href={to} fw={600} size="sm" className="stretched any-break">
                  {of}
                </Anchor>
              )}
              {beside && ` · ${beside}`}
              {at !== undefined && (
                <Text span c="dimmed" inherit>
                  {" · "}
                  <Time at={at} />
                </Text>
              )}
            </Text>
            <Text size="sm" c="dimmed" className="any-break" lineClamp={2}>
              {why}
            </Text>
          </div>
        </li>
      ))}
    </ul>
  );
}
