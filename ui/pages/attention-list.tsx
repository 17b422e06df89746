import { Anchor, Text } from "@mantine/core";
import { Link } from "wouter";
import { othersOf } from "#domain/labels/customer.ts";
import { CREDENTIAL_STATE_NAMES, failureLine, failureName } from "#domain/labels/states.ts";
import { listCredentials, listRuns, listSecrets, listWebhooks } from "../api/operations.ts";
import { useRead, useReads, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import type { Overview } from "../parts/answers.ts";
import { Beside } from "../parts/beside.tsx";
import { runTitle } from "../parts/run-title.ts";
import { Mark } from "../parts/run-status.tsx";
import { shortId } from "../parts/short-id.ts";
import { Time } from "../parts/time.tsx";
import { secretPath } from "./secret-path.ts";
import { describeDeath, isDead } from "./webhook-death.ts";

/** Whose it is, why in one sentence, and where to go; null: this role may not go there. */
export interface AttentionItem {
  readonly key: string;
  readonly kind: readonly [tone: "bad" | "waiting", name: string];
  readonly of: string;
  readonly beside?: readonly (readonly [title: string, text: string])[];
  readonly why: string;
  readonly at?: string | undefined;
  readonly to: string | null;
  /** What one does there, in a word or two. */
  readonly next?: string | undefined;
}

/** Locked credentials, and failed runs; the rest is behind a link. */
const SHOWN = 3;
/** Failed runs that are looked at: of one locked credential, and of all. */
const WITH_IT_MAX = 20;
const count = (number: number, one: string, many: string): string => `${number} ${number === 1 ? one : many}`;

/** What needs attention besides reviews, in one form. */
export function useAttention(overview: Overview | undefined): readonly AttentionItem[] {
  const { may } = useSignedIn();
  const locked = useLockedLogins(overview);
  const failed = useFailedRuns(overview, locked.runs);
  const dead = useDeadEndpoints(overview?.needs_people.dead_webhooks ?? 0);
  const lacking = useMissingSecrets();
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
    ...locked.items,
    ...lacking,
    ...dead,
    ...failed,
  ];
}

type Runs = AnswerOf<typeof listRuns>["items"];

/** Each locked credential with the runs that failed at its login: one incident is one row. */
function useLockedLogins(overview: Overview | undefined): {
  readonly items: readonly AttentionItem[];
  /** The ids of the runs that these rows are about. */
  readonly runs: ReadonlySet<string>;
} {
  const mayRead = useSignedIn().may("credential.read");
  const total = (overview?.failing_logins ?? []).reduce((sum, { locked }) => sum + locked, 0);
  const since = overview?.hours[0]?.at;
  const read = useRead(
    listCredentials,
    { query: { state: "locked", limit: SHOWN } },
    { live: true, enabled: mayRead && total > 0 },
  );
  const credentials = total > 0 ? (read.data?.items ?? []) : [];
  const failed = useReads(
    listRuns,
    credentials.map(({ id }) => ({
      query: { credential: id, status: "failed", failure: "login", since, limit: WITH_IT_MAX },
    })),
  ).map((page) => page?.items ?? []);
  const items = credentials.map((each, index): AttentionItem => {
    const runs = failed[index] ?? [];
    return {
      key: each.id,
      kind: ["bad", CREDENTIAL_STATE_NAMES.locked],
      of: each.name ?? shortId(each.id),
      beside: said({ customer: each.customer, strategy: each.strategy, account: each.account }),
      why: `The target rejected its last ${count(each.login_rejections, "login", "logins")}. ${namesOf(runs)}`,
      at: each.last_run_at ?? undefined,
      to: `/credentials/${each.id}`,
      next: "New link",
    };
  });
  const others = total - items.length;
  return {
    items: others <= 0 ? items : [...items, othersLocked(others, mayRead)],
    runs: new Set(failed.flat().map(({ id }) => id)),
  };
}

/** Those that are known. */
const said = (of: Readonly<Record<string, string | null>>): readonly (readonly [string, string])[] =>
  Object.entries(of).flatMap(([title, text]) =>
    text === null || text === "" ? [] : [[title, text] as const],
  );

const othersLocked = (others: number, mayRead: boolean): AttentionItem => ({
  key: "locked",
  kind: ["bad", CREDENTIAL_STATE_NAMES.locked],
  of: count(others, "locked credential", "locked credentials"),
  why: "The target rejected the logins, so no run logs in.",
  to: mayRead ? "/credentials?state=locked" : null,
});

const customersOf = (runs: readonly Run[]): string =>
  [...new Set(runs.flatMap(({ customer }) => customer ?? []))].join(", ");

/** "2 runs failed with it: Invoices of October, Test login." */
function namesOf(runs: readonly Run[]): string {
  if (runs.length === 0) return "No run logs in with it.";
  const names = [...new Set(runs.map(runTitle))];
  const more = names.length > SHOWN ? `, and ${names.length - SHOWN} more` : "";
  return `${count(runs.length, "run", "runs")} failed with it: ${names.slice(0, SHOWN).join(", ")}${more}.`;
}

/** Account secrets that a strategy names and that do not exist: none of its logins works. */
function useMissingSecrets(): readonly AttentionItem[] {
  const { may } = useSignedIn();
  const read = useRead(listSecrets, { query: {} }, { enabled: may("secret.read") });
  const missing = (read.data?.problems ?? []).filter(({ kind }) => kind === "missing_secret");
  return missing.slice(0, SHOWN).map((problem) => ({
    key: `secret ${problem.account} ${problem.strategy} ${problem.name}`,
    kind: ["bad", "Not set"],
    of: `Secret ${problem.name}`,
    beside: said({ strategy: problem.strategy, account: problem.account }),
    why: "The strategy names this secret, and the account does not have it: sign-ins and runs fail until it is set.",
    to: secretPath(problem),
    next: may("secret.manage") ? `Set ${problem.name}` : undefined,
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
    beside: said({ account: webhook.account }),
    why: `This endpoint is disabled: ${describeDeath(webhook)}.`,
    at: webhook.disabled_at ?? undefined,
    to: `/webhooks/${webhook.id}`,
    next: "Change URL or enable",
  }));
}

/** The newest of the hours that the page shows, without those of which other rows tell; the last row leads to all. */
function useFailedRuns(overview: Overview | undefined, told: ReadonlySet<string>): readonly AttentionItem[] {
  const since = overview?.hours[0]?.at;
  const hasFailed = overview?.hours.some(({ failed }) => failed > 0) ?? false;
  const runs = useRead(
    listRuns,
    { query: { status: "failed", since, limit: WITH_IT_MAX } },
    { live: true, enabled: hasFailed },
  );
  const untold = (runs.data?.items ?? []).filter(({ id }) => !told.has(id));
  return groupsOf(untold).slice(0, SHOWN).map(itemOf);
}

type Run = Runs[number];
type Group = readonly [Run, ...(readonly Run[])];

/** Runs of a Blueprint that failed for the same reason, the newest first. */
function groupsOf(runs: Runs): readonly Group[] {
  const groups = new Map<string, [Run, ...Run[]]>();
  for (const run of runs) {
    const key = JSON.stringify([run.account, run.blueprint, run.failure, run.failure_detail]);
    const group = groups.get(key);
    if (group) group.push(run);
    else groups.set(key, [run]);
  }
  return [...groups.values()];
}

function itemOf(group: Group): AttentionItem {
  const [run, ...others] = group;
  const common = {
    key: run.id,
    kind: ["bad", "Failed"],
    why: [
      run.failure === null ? "Failed" : failureName(run.failure),
      run.failure_detail && failureLine(run.failure_detail),
    ]
      .filter(Boolean)
      .join(": "),
    at: run.created_at,
  } as const;
  if (others.length === 0)
    return {
      ...common,
      of: runTitle(run),
      beside: said({
        customer: run.customer,
        ...Object.fromEntries(othersOf(run.metadata)),
        blueprint: run.blueprint,
        account: run.account,
      }),
      to: `/runs/${run.id}`,
      next: nextOf(run),
    };
  const { account, blueprint } = run;
  const query = new URLSearchParams({ status: "failed", last: "24h", account });
  if (blueprint !== null) query.set("blueprint", blueprint);
  return {
    ...common,
    of: `${group.length} runs of ${blueprint ?? "test logins"}`,
    beside: said({ customers: customersOf(group), account }),
    to: `/runs?${query}`,
    next: `See the ${group.length} runs`,
  };
}

/** What its page recommends. */
function nextOf({ failure, blueprint }: Run): string {
  if (failure === "login") return "Repair the login";
  if (failure === "data" && blueprint !== null) return "Correct the input";
  return "Run again";
}

export function AttentionList({ items }: { readonly items: readonly AttentionItem[] }) {
  if (items.length === 0) return null;
  return (
    <ul className="plain-list rows-card">
      {items.map(({ key, kind: [tone, name], of, beside, why, at, to, next }) => (
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
              {beside && <Beside of={beside} />}
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
          {next !== undefined && to !== null && (
            // The whole row leads there.
            <span className="next-step" aria-hidden="true">
              {next}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
