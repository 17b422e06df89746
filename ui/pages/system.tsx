import { Anchor, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import {
  MASTER_KEY_STATE_NAMES as KEY_NAMES,
  WAIT_NAMES,
  WORKER_STATE_NAMES,
} from "#domain/labels/states.ts";
import { readSystem } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { DataTable } from "../parts/data-table.tsx";
import { Facts } from "../parts/facts.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Section } from "../parts/section.tsx";
import { Time } from "../parts/time.tsx";

type System = AnswerOf<typeof readSystem>;

export function SystemPage() {
  const system = useRead(readSystem, {}, { live: true });
  return (
    <>
      <PageHead title="System" about="Workers, queue and storage." />
      <Reading of={system}>{(data) => <SystemParts system={data} />}</Reading>
    </>
  );
}

/** What is wrong, or that nothing is. */
function Notes({ system }: { readonly system: System }) {
  return (
    <>
      {!system.workers.some(({ is_alive: isAlive }) => isAlive) && (
        <Note tone="bad" title="No healthy worker">
          Runs wait until there is one: start <code>latchkey serve</code> with the role <code>worker</code>.
        </Note>
      )}
      {waitsInVain(system) && (
        <Note tone="bad" title="Runs wait for a browser, and no worker has one">
          Install Chromium where the workers run (on Debian and Ubuntu:{" "}
          <code>apt install chromium-headless-shell</code>), or set <code>LATCHKEY_BROWSER</code> to the path
          of one.
        </Note>
      )}
      {system.mail !== null && system.mail.failure !== null && (
        <Note tone="bad" title="Mail to operators can't be sent">
          {system.mail.failure}. Check <code>LATCHKEY_SMTP_URL</code> and its password. What the mail would
          tell is kept, and tried again.
        </Note>
      )}
      {system.refused_rows.length > 0 && <RefusedRows rows={system.refused_rows} />}
      {troublesOf(system).length === 0 && system.mail !== null && (
        <Note tone="good" title="Everything works">
          {WORKS}
        </Note>
      )}
      {system.mail === null && (
        <Note
          tone="waiting"
          title={
            troublesOf(system).length === 0 ? "Runs work, and operators get no mail" : "Operators get no mail"
          }
        >
          {troublesOf(system).length === 0 && `${WORKS} `}Reviews, locked credentials and disabled endpoints
          are only seen here. Set <code>LATCHKEY_SMTP_URL</code> to have them sent by mail, or create an
          endpoint for operators under{" "}
          <Anchor component={Link} href="/webhooks" size="sm" underline="always">
            Webhooks
          </Anchor>
          .
        </Note>
      )}
    </>
  );
}

function SystemParts({ system }: { readonly system: System }) {
  return (
    <Stack gap="xl">
      <Notes system={system} />
      <Section title="Workers" isBare>
        <Workers workers={system.workers} />
      </Section>
      <Section title="Open runs" isBare>
        {system.queue.length === 0 ? (
          <Text size="sm" c="dimmed">
            None.
          </Text>
        ) : (
          <DataTable
            name="Queue"
            rows={system.queue}
            keyOf={({ waits_for: reason }) => reason}
            columns={[
              { title: "Waiting for", cell: ({ waits_for: reason }) => WAIT_NAMES[reason] },
              { title: "Runs", cell: ({ runs }) => runs },
              { title: "Oldest", cell: ({ oldest_at: at }) => <Time at={at} /> },
            ]}
          />
        )}
      </Section>
      <Section title="Installation">
        <Facts of={factsOf(system)} />
      </Section>
      <Section title="Master keys" isBare>
        <DataTable
          name="Master keys"
          rows={system.keys}
          keyOf={({ id }) => id}
          columns={[
            { title: "Key", cell: ({ id }) => id },
            {
              title: "State",
              cell: ({ is_primary: isPrimary }) =>
                isPrimary ? (
                  <Mark tone="good">{KEY_NAMES.primary}</Mark>
                ) : (
                  <Mark tone="quiet">{KEY_NAMES.decryptsOnly}</Mark>
                ),
            },
            { title: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
          ]}
        />
      </Section>
    </Stack>
  );
}

const WORKS = "Workers answer, nothing waits in vain, and expired data is purged in time.";

/** What stands in the way of runs or of data that is to be deleted; each has a note or a mark of its own. */
const troublesOf = (system: System): readonly string[] =>
  Object.entries({
    workers: !system.workers.some(({ is_alive: isAlive }) => isAlive),
    browsers: waitsInVain(system),
    mail: system.mail !== null && system.mail.failure !== null,
    rows: system.refused_rows.length > 0,
    retention: system.purge_lag_seconds >= LAG_SECONDS_MAX,
  }).flatMap(([name, isTrouble]) => (isTrouble ? [name] : []));

const waitsInVain = ({ queue, workers }: System): boolean =>
  queue.some(({ waits_for: reason }) => reason === "browser") &&
  workers.every(({ browsers }) => browsers === 0);

const FAULTS: Readonly<Record<System["refused_rows"][number]["fault"], string>> = {
  unsigned: "No signature",
  forged: "Changed",
  outdated: "Older than in the audit log",
  deleted: "Missing, though in the audit log",
};

function RefusedRows({ rows }: { readonly rows: System["refused_rows"] }) {
  return (
    <>
      <Note tone="bad" title="The database was changed by another program">
        These rows decide where secrets go or who may do what, and Latchkey did not write them. They are not
        used. Find out who can write to the database; <code>docs/security.md</code> says how to put them
        right.
      </Note>
      <Section title="Refused rows" isBare>
        <DataTable
          name="Refused rows"
          rows={rows}
          keyOf={({ kind, id }) => `${kind}/${id}`}
          columns={[
            { title: "Row", cell: ({ kind, id }) => `${kind} ${id}` },
            { title: "Fault", cell: ({ fault }) => <Mark tone="bad">{FAULTS[fault]}</Mark> },
            { title: "Found", cell: ({ first_seen_at: at }) => <Time at={at} /> },
          ]}
        />
      </Section>
    </>
  );
}

function Workers({ workers }: { readonly workers: System["workers"] }) {
  return (
    <DataTable
      name="Workers"
      rows={workers}
      keyOf={({ id }) => id}
      columns={[
        { title: "Worker", cell: ({ hostname, pid }) => `${hostname}, process ${pid}` },
        {
          title: "State",
          cell: ({ is_alive: isAlive }) =>
            isAlive ? (
              <Mark tone="good">{WORKER_STATE_NAMES.healthy}</Mark>
            ) : (
              <Mark tone="bad">{WORKER_STATE_NAMES.silent}</Mark>
            ),
        },
        { title: "Runs", cell: ({ runs }) => runs },
        {
          title: "Browsers",
          from: "sm",
          cell: ({ browsers, browser_network: network }) => {
            if (browsers === null) return "Not known";
            if (browsers === 0) return "None";
            return network === "own"
              ? `Up to ${browsers}, each in a network of its own`
              : `Up to ${browsers}, in the machine’s network`;
          },
        },
        { title: "Heartbeat", from: "xs", cell: ({ heartbeat_at: at }) => <Time at={at} /> },
        { title: "Started", from: "md", cell: ({ started_at: at }) => <Time at={at} /> },
      ]}
    />
  );
}

function factsOf(system: System) {
  const { database, store, version, public_url: url, can_open_credentials: canOpen } = system;
  return [
    ["Version", version],
    ["Public URL", url],
    ["PostgreSQL", database.version],
    ["Database", formatBytes(database.size_bytes)],
    ["Connections", `${database.connections} of ${database.connections_max}`],
    ["Database schema", `version ${database.migration}`],
    ["Audit entries not yet in the chain", String(database.unchained_audit_entries)],
    [
      "Retention",
      <Mark key="retention" tone={system.purge_lag_seconds < LAG_SECONDS_MAX ? "good" : "bad"}>
        {formatLag(system.purge_lag_seconds)}
      </Mark>,
    ],
    ["Object store", store === "s3" ? "S3" : "a local folder"],
    [
      "Mail to operators",
      <Mark
        key="mail"
        tone={system.mail === null ? "waiting" : system.mail.failure === null ? "good" : "bad"}
      >
        {mailOf(system.mail)}
      </Mark>,
    ],
    [
      "This process can decrypt credentials",
      <Mark key="open" tone={canOpen ? "good" : "quiet"}>
        {canOpen ? "yes" : "no"}
      </Mark>,
    ],
  ] as const;
}

function mailOf(mail: System["mail"]): string {
  if (mail === null) return "none is sent";
  if (mail.failure !== null) return "can't be sent";
  return mail.sent_at === null ? "none yet" : `last sent ${mail.sent_at.slice(0, 16).replace("T", " ")} UTC`;
}

const SECONDS_PER_HOUR = 3_600;
/** Data is purged by the hour. */
const LAG_SECONDS_MAX = SECONDS_PER_HOUR;

function formatLag(seconds: number): string {
  if (seconds < LAG_SECONDS_MAX) return "up to date";
  return `${Math.floor(seconds / SECONDS_PER_HOUR)} h late: expired data has not been purged yet`;
}

function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const unit = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${(bytes / 1_000 ** unit).toFixed(unit === 0 ? 0 : 1)} ${units[unit]}`;
}
