import { Anchor, Button, List, Stack } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { Link, useLocation, useParams } from "wouter";
import { FIRE_OUTCOME_NAMES } from "#domain/labels/schedules.ts";
import {
  listSchedules,
  pauseSchedule,
  readSchedule,
  resumeSchedule,
  runSchedule,
} from "../api/operations.ts";
import { keyOf, OFTEN_MS, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { Copyable } from "../parts/copyable.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Facts } from "../parts/facts.tsx";
import { LinkIf } from "../parts/link-if.tsx";
import { Named } from "../parts/named.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { RunStatusMark } from "../parts/run-status.tsx";
import { Section } from "../parts/section.tsx";
import { shortId } from "../parts/short-id.ts";
import { Time } from "../parts/time.tsx";
import { ScheduleState, ScheduleTrouble } from "./schedule-state.tsx";

type Schedule = AnswerOf<typeof readSchedule>;

const changes = [keyOf(listSchedules), keyOf(readSchedule)];

export function SchedulePage() {
  const { scheduleId = "" } = useParams();
  const schedule = useRead(readSchedule, { params: { scheduleId } }, { everyMs: OFTEN_MS });
  const shown = schedule.data;
  return (
    <>
      <PageHead
        title={shown?.key ?? "Schedule"}
        about={
          shown && (
            // Announced when it changes.
            <output>
              <ScheduleState of={shown} />
            </output>
          )
        }
      >
        {shown && <Actions of={shown} />}
      </PageHead>
      <Reading of={schedule}>
        {(found) => (
          <Stack gap="xl">
            <ScheduleTrouble of={found} />
            <Section title="About">
              <About schedule={found} />
            </Section>
            <Section title="Next times">
              <NextTimes of={found} />
            </Section>
            <Section title="Last runs" isBare>
              <LastRuns of={found} />
            </Section>
          </Stack>
        )}
      </Reading>
    </>
  );
}

function About({ schedule }: { readonly schedule: Schedule }) {
  const { may } = useSignedIn();
  const { account, blueprint, credentials, last } = schedule;
  return (
    <Facts
      of={[
        ["ID", <Copyable key="id" text={schedule.id} name="the ID" />],
        ["Account", account],
        [
          "Blueprint",
          <LinkIf key="of" to={may("config.read") && `/blueprints/${account}/${blueprint}`}>
            {blueprint}
          </LinkIf>,
        ],
        ["Times", <code key="cron">{schedule.cron}</code>],
        ["Time zone", schedule.time_zone],
        ["Missed times", schedule.missed],
        ["Overlapping runs", schedule.overlap],
        ["Jitter", schedule.jitter === "0" ? "none" : `up to ${schedule.jitter}`],
        [
          "Credentials",
          credentials.length === 0 ? null : (
            <Stack key="credentials" gap={2}>
              {credentials.map((id) => (
                <LinkIf key={id} to={may("credential.read") && `/credentials/${id}`}>
                  {shortId(id)}
                </LinkIf>
              ))}
            </Stack>
          ),
        ],
        ["Managed by", schedule.is_from_document ? "the Blueprint's document" : "the API"],
        [
          "Last time",
          last && (
            <span key="last">
              <Time at={last.due_at} />: {FIRE_OUTCOME_NAMES[last.outcome]}
            </span>
          ),
        ],
        ["Created", <Time key="created" at={schedule.created_at} />],
      ]}
    />
  );
}

function NextTimes({ of: { next } }: { readonly of: Schedule }) {
  if (next.length === 0) return <>None while it is paused.</>;
  return (
    <List size="sm">
      {next.map((at) => (
        <List.Item key={at}>
          <Time at={at} isExact />
        </List.Item>
      ))}
    </List>
  );
}

function LastRuns({ of: { runs } }: { readonly of: Schedule }) {
  if (runs.length === 0)
    return <EmptyState title="No run yet">Its last ten runs are listed here.</EmptyState>;
  return (
    <DataTable
      name="Last runs"
      rows={runs}
      keyOf={({ id }) => id}
      columns={[
        {
          title: "Run",
          cell: ({ id }) => (
            <Named
              name={
                <Anchor component={Link} href={`/runs/${id}`} fw={600} size="sm">
                  {shortId(id)}
                </Anchor>
              }
              id={id}
              of="the run"
            />
          ),
        },
        {
          title: "State",
          cell: ({ status, progress_step: step }) => <RunStatusMark status={status} step={step} />,
        },
        { title: "Time", cell: ({ due_at: at }) => <Time at={at} /> },
        {
          title: "Begun by",
          from: "sm",
          cell: ({ is_manual: isManual }) => (isManual ? "an operator" : "the clock"),
        },
      ]}
    />
  );
}

function Actions({ of: schedule }: { readonly of: Schedule }) {
  const { may } = useSignedIn();
  return (
    <>
      {may("run.trigger") && <RunButton id={schedule.id} />}
      {may("schedule.manage") && <SwitchButton schedule={schedule} />}
    </>
  );
}

function RunButton({ id }: { readonly id: string }) {
  const [, navigate] = useLocation();
  return (
    <AskButton
      to={runSchedule}
      input={{ params: { scheduleId: id } }}
      changes={changes}
      label="Run now"
      title="Begin a run now?"
      action="Begin"
      done="The run has begun."
      onDone={(run) => navigate(`/runs/${run.id}`)}
    >
      With the schedule&apos;s trigger. It is none of the schedule&apos;s times: these stay as they are.
    </AskButton>
  );
}

function SwitchButton({ schedule: { id, key, state } }: { readonly schedule: Schedule }) {
  const input = { params: { scheduleId: id } };
  const resuming = useOperation(resumeSchedule, {
    changes,
    onDone: () => notifications.show({ message: "The schedule was resumed." }),
  });
  if (state === "paused")
    return (
      <Button size="xs" variant="default" loading={resuming.isPending} onClick={() => resuming.mutate(input)}>
        Resume
      </Button>
    );
  return (
    <AskButton
      to={pauseSchedule}
      input={input}
      changes={changes}
      label="Pause"
      title="Pause this schedule?"
      action="Pause"
      done="The schedule was paused."
    >
      The times of <b>{key}</b> have no runs until somebody resumes it. Runs that it began continue.
    </AskButton>
  );
}
