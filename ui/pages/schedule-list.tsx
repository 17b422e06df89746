import { Anchor, SegmentedControl, Stack } from "@mantine/core";
import { Link, useSearchParams } from "wouter";
import type { ScheduleState as State } from "#domain/schedule.ts";
import { listSchedules } from "../api/operations.ts";
import { OFTEN_MS, useRead } from "../api/queries.ts";
import { AccountFilter, useListQuery } from "../parts/account-filter.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Named } from "../parts/named.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pager } from "../parts/pager.tsx";
import { Reading } from "../parts/reading.tsx";
import { Time } from "../parts/time.tsx";
import { ScheduleState, type Schedule } from "./schedule-state.tsx";

const NAMES: Readonly<Record<State, string>> = { active: "Active", locked: "Locked", paused: "Paused" };
const isState = (text: string | null): text is State => text !== null && Object.hasOwn(NAMES, text);

export function ScheduleListPage() {
  const [search, setSearch] = useSearchParams();
  const chosen = search.get("state");
  const state = isState(chosen) ? chosen : undefined;
  const schedules = useRead(
    listSchedules,
    { query: { ...useListQuery(), blueprint: search.get("blueprint") ?? undefined, state } },
    { everyMs: OFTEN_MS },
  );
  const choose = (to: string): void => {
    const next = new URLSearchParams(search);
    next.delete("cursor");
    if (to === "") next.delete("state");
    else next.set("state", to);
    setSearch(next);
  };
  return (
    <>
      <PageHead title="Schedules" about="Blueprints that run by the clock." />
      <AccountFilter />
      <Stack gap="md">
        <SegmentedControl
          aria-label="State"
          value={state ?? ""}
          onChange={choose}
          data={[
            { value: "", label: "All" },
            ...Object.entries(NAMES).map(([value, label]) => ({ value, label })),
          ]}
          maw={420}
        />
        <Reading of={schedules}>
          {({ items, next_cursor: next }) =>
            items.length === 0 ? (
              <EmptyState title={state === undefined ? "No schedules yet" : "None in this state"}>
                A Blueprint&apos;s document has them under <code>schedules</code>, and an account&apos;s
                backend makes one for each connection with <code>PUT /api/v1/schedules/KEY</code>.
              </EmptyState>
            ) : (
              <>
                <ScheduleTable schedules={items} />
                <Pager next={next} />
              </>
            )
          }
        </Reading>
      </Stack>
    </>
  );
}

function ScheduleTable({ schedules }: { readonly schedules: readonly Schedule[] }) {
  return (
    <DataTable
      name="Schedules"
      rows={schedules}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Schedule",
          cell: ({ id, key }) => (
            <Named
              name={
                <Anchor component={Link} href={`/schedules/${id}`} fw={600} size="sm">
                  {key}
                </Anchor>
              }
              id={id}
              of={key}
            />
          ),
        },
        { title: "State", cell: (schedule) => <ScheduleState of={schedule} /> },
        { title: "Next time", cell: ({ next_at: at }) => (at === null ? "none" : <Time at={at} />) },
        {
          title: "Blueprint",
          from: "sm",
          cell: ({ account, blueprint }) => (
            <Anchor component={Link} href={`/blueprints/${account}/${blueprint}`} size="sm">
              {blueprint}
            </Anchor>
          ),
        },
        { title: "Account", from: "md", cell: ({ account }) => account },
        {
          title: "Times",
          from: "md",
          cell: ({ cron, time_zone: zone }) => (
            <>
              <code>{cron}</code> {zone}
            </>
          ),
        },
      ]}
    />
  );
}
