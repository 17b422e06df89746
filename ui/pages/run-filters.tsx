import { Button, CloseButton, Group, NativeSelect } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "wouter";
import type { RunStatus } from "#domain/run.ts";
import { RUN_STATUS_NAMES, runStateName } from "#domain/labels/states.ts";
import { listAccounts, listBlueprints } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import { useNow } from "../parts/now.ts";
import { SearchField } from "../parts/search-field.tsx";
import styles from "./run-filters.module.css";

/** Filters in the URL, with the names of the API's parameters. */
const TEXTS = [
  "account",
  "blueprint",
  "progress_step",
  "q",
  "run_name",
  "metadata",
  "credential",
  "failure",
  "error",
] as const;
const TIMES = ["since", "until"] as const;

type Filters = Partial<Record<(typeof TEXTS)[number] | (typeof TIMES)[number], string>> & {
  status?: RunStatus;
};

/** `last` in the URL: only runs triggered in this time. */
const LAST = {
  "1h": ["Last hour", 3_600_000],
  "24h": ["Last 24 hours", 86_400_000],
  "7d": ["Last 7 days", 7 * 86_400_000],
} as const;
const MINUTE_MS = 60_000;

/** The step of runs for which people wait: a state of its own among the statuses. */
const AWAITING = "awaiting_review";
const named = Object.entries(RUN_STATUS_NAMES);
const afterRunning = named.findIndex(([status]) => status === "running") + 1;
const STATES: readonly (readonly [state: string, name: string])[] = [
  ["", "All"],
  ...named.slice(0, afterRunning),
  [AWAITING, runStateName("running", AWAITING)],
  ...named.slice(afterRunning),
];

const isStatus = (text: string): text is RunStatus => Object.hasOwn(RUN_STATUS_NAMES, text);
const isLast = (text: string): text is keyof typeof LAST => Object.hasOwn(LAST, text);

function readRunFilters(search: URLSearchParams, nowMs: number): Filters {
  const filters: Filters = {};
  const status = search.get("status") ?? "";
  if (isStatus(status)) filters.status = status;
  for (const name of TEXTS) {
    const value = search.get(name);
    if (value) filters[name] = value;
  }
  for (const name of TIMES) {
    const at = new Date(search.get(name) ?? "");
    if (!Number.isNaN(at.getTime())) filters[name] = at.toISOString();
  }
  const last = search.get("last") ?? "";
  // Whole minutes, so that the list is not another one every few seconds.
  if (isLast(last))
    filters.since = new Date(Math.floor((nowMs - LAST[last][1]) / MINUTE_MS) * MINUTE_MS).toISOString();
  return filters;
}

/** The filters in the page's URL. */
export function useRunFilters(): Filters {
  const [search] = useSearchParams();
  return readRunFilters(search, useNow());
}

/** Filters take effect at once. The URL contains them, so that a filtered list can be shared. */
export function RunFilters() {
  const [search, setSearch] = useSearchParams();
  const set = (changes: Readonly<Record<string, string>>): void =>
    setSearch((before) => {
      const after = new URLSearchParams(before);
      after.delete("cursor");
      for (const [name, value] of Object.entries(changes))
        if (value === "") after.delete(name);
        else after.set(name, value);
      return after;
    });
  const [isOpen, setIsOpen] = useState(false);
  const inUse = ["blueprint", "account", "status", "progress_step", "last"].filter((name) =>
    search.get(name),
  ).length;
  return (
    <search className={styles["filters"]} aria-label="Filters" data-open={isOpen}>
      <SearchField
        className={styles["search"] ?? ""}
        label="Name or metadata"
        placeholder="Part of a name, a customer, an order"
      />
      <Button
        className={styles["toggle"] ?? ""}
        variant="default"
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        {inUse === 0 ? "Filters" : `Filters (${inUse})`}
      </Button>
      <DocumentFilters search={search} onChange={set} />
      <div className={styles["presets"]}>
        <Chips
          label="Status"
          value={search.get("progress_step") ?? search.get("status") ?? ""}
          options={STATES}
          onChange={(state) =>
            set(
              state === AWAITING
                ? { status: "", progress_step: state }
                : { status: state, progress_step: "" },
            )
          }
        />
        <Chips
          label="Triggered"
          value={search.get("last") ?? ""}
          options={[["", "Any time"], ...Object.entries(LAST).map(([key, [name]]) => [key, name] as const)]}
          onChange={(last) => set({ last, since: "", until: "" })}
        />
      </div>
      <Others search={search} onRemove={(name) => set({ [name]: "" })} />
    </search>
  );
}

interface ChangeProps {
  readonly search: URLSearchParams;
  readonly onChange: (changes: Readonly<Record<string, string>>) => void;
}

/** Selects of Blueprint and account, for roles that may see these. */
function DocumentFilters({ search, onChange }: ChangeProps) {
  const { may } = useSignedIn();
  const enabled = may("config.read");
  const accounts = useRead(listAccounts, {}, { enabled }).data?.items ?? [];
  const blueprints = useRead(listBlueprints, { query: { limit: 200 } }, { enabled }).data?.items ?? [];
  const keys = [...new Set(blueprints.map(({ key }) => key))].toSorted();
  if (!enabled) return null;
  return (
    <>
      <NativeSelect
        label="Blueprint"
        value={search.get("blueprint") ?? ""}
        onChange={(event) => onChange({ blueprint: event.currentTarget.value })}
        data={withGiven(keys, search.get("blueprint"))}
      />
      {accounts.length > 1 && (
        <NativeSelect
          label="Account"
          value={search.get("account") ?? ""}
          onChange={(event) => onChange({ account: event.currentTarget.value })}
          data={withGiven(
            accounts.map(({ account }) => account),
            search.get("account"),
          )}
        />
      )}
    </>
  );
}

/** "All", the known values, and the one in the URL. */
const withGiven = (known: readonly string[], given: string | null) => [
  { value: "", label: "All" },
  ...[...new Set([...known, ...(given ? [given] : [])])].map((value) => ({ value, label: value })),
];

function Chips(props: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, name: string])[];
  readonly onChange: (value: string) => void;
}) {
  return (
    <Group gap={4} component="fieldset" aria-label={props.label} className={styles["chips"] ?? ""}>
      {props.options.map(([value, name]) => (
        <Button
          key={value}
          size="compact-sm"
          radius="xl"
          variant={value === props.value ? "filled" : "default"}
          aria-pressed={value === props.value}
          onClick={() => props.onChange(value)}
        >
          {name}
        </Button>
      ))}
    </Group>
  );
}

const NAMES: Readonly<Record<string, string>> = {
  metadata: "Metadata",
  credential: "Credential",
  run_name: "Name starts with",
  failure: "Failure",
  error: "Error",
  since: "From",
  until: "Until",
};

/** Filters that came with a link, to be removed one by one. */
function Others({
  search,
  onRemove,
}: {
  readonly search: URLSearchParams;
  readonly onRemove: (name: string) => void;
}) {
  const given = Object.entries(NAMES).flatMap(([name, label]) => {
    const value = search.get(name);
    return value ? [{ name, text: `${label}: ${value}` }] : [];
  });
  if (given.length === 0) return null;
  return (
    <Group
      gap={4}
      component="fieldset"
      aria-label="More filters"
      className={`${styles["chips"]} ${styles["others"]}`}
    >
      {given.map(({ name, text }) => (
        <span key={name} className={styles["given"]}>
          <span className={styles["text"]} title={text}>
            {text}
          </span>
          <CloseButton size="xs" aria-label={`Remove ${text}`} onClick={() => onRemove(name)} />
        </span>
      ))}
    </Group>
  );
}
