import { Anchor, Button, Group, NativeSelect, Paper, Text, TextInput } from "@mantine/core";
import type { FormEvent } from "react";
import { Link, useSearchParams } from "wouter";
import type { AuditAction } from "#domain/audit-actions.ts";
import {
  exportAudit,
  listAccounts,
  listAudit,
  listAuditChains,
  listKeys,
  listOperators,
  listTokens,
} from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import { addressOf, type AnswerOf } from "../api/request.ts";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { shortId } from "../parts/short-id.ts";
import { Time } from "../parts/time.tsx";
import { AUDIT_ACTION_NAMES } from "./audit-actions.ts";
import { useAuditCheck } from "./audit-check.tsx";
import { readDetail } from "./audit-detail.ts";
import styles from "./audit-log.module.css";

/** Of a long value, the tooltip and the export have all. */
const TEXT_MAX = 24;

type Entry = AnswerOf<typeof listAudit>["items"][number];

export function AuditLogPage() {
  const [search] = useSearchParams();
  const given = (name: string): string | undefined => search.get(name) ?? undefined;
  const entries = useRead(listAudit, {
    query: {
      // The API rejects an unknown action.
      action: given("action") as AuditAction | undefined,
      operator: given("operator"),
      subject: given("subject"),
      account: given("account"),
      since: startOf(given("from")),
      until: startOf(given("to"), DAY_MS),
      cursor: given("cursor"),
    },
  });
  const { button, report } = useAuditCheck();
  return (
    <>
      <PageHead title="Audit log" about="A tamper-evident record of every action.">
        {button}
        <Button
          component="a"
          variant="default"
          href={addressOf(exportAudit, { query: { account: given("account") } })}
          download
        >
          Export
        </Button>
      </PageHead>
      {report}
      <ExportedMonths account={given("account")} />
      <AuditFilters />
      <Reading of={entries}>
        {({ items, next_cursor: next }) =>
          items.length === 0 ? (
            <EmptyState title="No entries match">Try fewer filters.</EmptyState>
          ) : (
            <>
              <EntryTable entries={items} />
              <Pager next={next} />
            </>
          )
        }
      </Reading>
    </>
  );
}

/** Says which entries can't be found here. */
function ExportedMonths({ account }: { readonly account: string | undefined }) {
  const chains = useRead(listAuditChains, {}).data?.items ?? [];
  const days = chains
    .filter((chain) => account === undefined || chain.account === account)
    .flatMap(({ exported_before: day }) => day ?? []);
  const last = days.toSorted().at(-1);
  if (last === undefined) return null;
  return (
    <Note tone="quiet" title={`Entries before ${last} were exported`}>
      They are in files, and no longer in the database. The command line verifies them:{" "}
      <code>latchkey audit verify FILE</code>.
    </Note>
  );
}

const DAY_MS = 86_400_000;

/** A day of UTC, as the log has it, or the time so much after it; a text that is no date is left out. */
function startOf(day: string | undefined, afterMs = 0): string | undefined {
  const at = Date.parse(day ?? "");
  return Number.isNaN(at) ? undefined : new Date(at + afterMs).toISOString();
}

const ALL = { value: "", label: "All" } as const;
const ACTIONS = [
  ALL,
  ...Object.entries(AUDIT_ACTION_NAMES)
    .map(([value, label]) => ({ value, label }))
    .toSorted((left, right) => left.label.localeCompare(right.label, "en")),
];

/** The filters that are a choice, for a role that may see what there is to choose from. */
function useChoices() {
  const { may } = useSignedIn();
  const operators = useRead(listOperators, {}, { enabled: may("operator.read") }).data?.items ?? [];
  const accounts = useRead(listAccounts, {}, { enabled: may("config.read") }).data?.items ?? [];
  const choiceOf = (name: string, label: string, values: readonly string[], given: string | null) => ({
    name,
    label,
    data: [
      ALL,
      ...[...new Set([...values, ...(given ? [given] : [])])].map((value) => ({ value, label: value })),
    ],
  });
  return (search: URLSearchParams) => [
    { name: "action", label: "Action", data: ACTIONS },
    choiceOf(
      "operator",
      "Operator",
      operators.map(({ email }) => email),
      search.get("operator"),
    ),
    choiceOf(
      "account",
      "Account",
      accounts.map(({ account }) => account),
      search.get("account"),
    ),
  ];
}

function AuditFilters() {
  const [search, setSearch] = useSearchParams();
  const choices = useChoices();
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const next = new URLSearchParams();
    for (const [name, value] of new FormData(event.currentTarget))
      if (typeof value === "string" && value.trim() !== "") next.set(name, value.trim());
    setSearch(next);
  };
  return (
    <Paper withBorder radius="lg" p="md" mb="md">
      {/* Recreated when the URL changes, so that its fields show the current filter. */}
      <form key={search.toString()} onSubmit={submit} aria-label="Filters">
        <div className="filters many">
          {choices(search).map(({ name, label, data }) => (
            <NativeSelect
              key={name}
              name={name}
              label={label}
              data={data}
              defaultValue={search.get(name) ?? ""}
              onChange={(event) => event.currentTarget.form?.requestSubmit()}
            />
          ))}
          <TextInput
            name="subject"
            label="Subject"
            placeholder="An ID"
            defaultValue={search.get("subject") ?? ""}
          />
          {[
            ["from", "From (UTC)"],
            ["to", "To (UTC)"],
          ].map(([name = "", label]) => (
            <TextInput
              key={name}
              name={name}
              label={label}
              type="date"
              defaultValue={search.get(name) ?? ""}
            />
          ))}
          <Group gap="xs">
            <Button type="submit" variant="default">
              Filter
            </Button>
            {search.size > 0 && (
              <Button variant="subtle" onClick={() => setSearch(new URLSearchParams())}>
                Clear
              </Button>
            )}
          </Group>
        </div>
      </form>
    </Paper>
  );
}

const ACTOR_NAMES: Readonly<Record<string, string>> = {
  api_key: "API key",
  cli: "Command line",
  end_user: "End user",
  operator_token: "Token",
  run: "Run",
  service: "Service",
};

/** Pages of what an id names, by its prefix. */
const PAGES: Readonly<Record<string, string>> = {
  run: "runs",
  cred: "credentials",
  sess: "sessions",
  rev: "reviews",
  we: "webhooks",
};

/** The name of an operator, an API key or an operator token, if this operator may see it. */
function useNameOf(id: string): string | undefined {
  const { may } = useSignedIn();
  const operators = useRead(listOperators, {}, { enabled: id.startsWith("op_") && may("operator.read") });
  const keys = useRead(listKeys, { query: {} }, { enabled: id.startsWith("key_") && may("key.read") });
  const tokens = useRead(listTokens, {}, { enabled: id.startsWith("tok_") && may("token.read") });
  const own = <T extends { readonly id: string }>(of: readonly T[] | undefined): T | undefined =>
    of?.find((each) => each.id === id);
  return own(operators.data?.items)?.email ?? own(keys.data?.items)?.name ?? own(tokens.data?.items)?.name;
}

/** What it is about, by its name where it has one: a link to its page, or to all entries about it. */
function Subject({ id }: { readonly id: string }) {
  const name = useNameOf(id);
  const page = PAGES[id.slice(0, id.indexOf("_"))];
  return (
    <Anchor
      component={Link}
      href={page === undefined ? `/audit?${new URLSearchParams({ subject: id })}` : `/${page}/${id}`}
      size="sm"
      title={id}
      className="no-wrap"
    >
      {name ?? shortId(id)}
    </Anchor>
  );
}

function EntryTable({ entries }: { readonly entries: readonly Entry[] }) {
  return (
    <DataTable
      name="Audit log"
      isDense
      rows={entries}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Action",
          cell: ({ action }) => (
            <Text size="sm" fw={600} title={action} className={styles["action"] ?? ""}>
              {AUDIT_ACTION_NAMES[action as AuditAction] ?? action}
            </Text>
          ),
        },
        { title: "Subject", cell: ({ subject_id: subject }) => <Subject id={subject} /> },
        { title: "Actor", cell: (entry) => <Actor of={entry} /> },
        { title: "When", from: "xs", cell: ({ occurred_at: at }) => <Time at={at} isExact /> },
        {
          title: "Detail",
          from: "md",
          cell: (entry) => <Detail of={entry} />,
        },
        {
          title: "Account",
          from: "md",
          cell: ({ account, sequence }) => (
            <span
              className="no-wrap"
              title={
                sequence === null ? "It has no number in its chain yet." : `Number ${sequence} in its chain`
              }
            >
              {account ?? "installation"}
            </span>
          ),
        },
      ]}
    />
  );
}

/** Who did it: an operator, a key or a token by its name, anything else by what it is; the tooltip has all of it. */
function Actor({ of: { operator, actor_kind: kind, actor_id: id } }: { readonly of: Entry }) {
  const name = useNameOf(id ?? "");
  const what = ACTOR_NAMES[kind] ?? kind;
  return (
    <span className="no-wrap" title={[what, name, id].filter(Boolean).join(" · ")}>
      {operator ?? name ?? what}
    </span>
  );
}

function Detail({ of: { detail, run_id: run } }: { readonly of: Entry }) {
  const fields = readDetail(detail);
  return (
    <div className={styles["line"]}>
      {fields.length > 0 && (
        <dl className={styles["detail"]}>
          {fields.map(({ name, text }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd title={text}>{text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text}</dd>
            </div>
          ))}
        </dl>
      )}
      {run !== null && (
        <Anchor component={Link} href={`/runs/${run}`} size="xs">
          Show run
        </Anchor>
      )}
    </div>
  );
}
