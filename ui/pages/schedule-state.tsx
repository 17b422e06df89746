import { Text } from "@mantine/core";
import { scheduleStateName } from "#domain/labels/schedules.ts";
import type { ScheduleState as State } from "#domain/schedule.ts";
import type { listSchedules } from "../api/operations.ts";
import type { AnswerOf } from "../api/request.ts";
import { Note } from "../parts/note.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";

export type Schedule = AnswerOf<typeof listSchedules>["items"][number];

const TONES: Readonly<Record<State, string>> = { active: "good", locked: "waiting", paused: "waiting" };
const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export function ScheduleState({ of: schedule }: { readonly of: Schedule }) {
  const { paused_reason: reason, paused_at: at, locked_until: until } = schedule;
  const isQuiet = reason === "operator" || reason === "ended" || reason === "blueprint_retired";
  return (
    <>
      <Mark tone={isQuiet ? "quiet" : TONES[schedule.state]}>{sentence(scheduleStateName(schedule))}</Mark>
      {at !== null && (
        <Text size="xs" c="dimmed" component="div">
          since <Time at={at} />
        </Text>
      )}
      {at === null && until !== null && (
        <Text size="xs" c="dimmed" component="div">
          until <Time at={until} />
        </Text>
      )}
    </>
  );
}

/** Why a schedule begins no runs, and what helps; nothing where all is well. */
export function ScheduleTrouble({ of: schedule }: { readonly of: Schedule }) {
  const { paused_reason: reason, locked_until: until } = schedule;
  if (reason === "credential_deleted")
    return (
      <Note tone="waiting" title="A credential of this schedule was deleted">
        It continues when {whoChanges(schedule)} names another one.
      </Note>
    );
  if (reason === "blueprint_retired")
    return (
      <Note tone="quiet" title="The Blueprint is retired">
        Restore the Blueprint, then resume the schedule.
      </Note>
    );
  if (reason === "refused")
    return (
      <Note tone="bad" title="The Blueprint refuses this schedule's trigger">
        {schedule.paused_detail} It continues when {whoChanges(schedule)} has another trigger, or when the
        Blueprint accepts this one and you resume the schedule.
      </Note>
    );
  if (reason === null && until !== null)
    return (
      <Note tone="waiting" title="A credential of this schedule is locked">
        The target rejected several logins, so its times have no runs until <Time at={until} />. If the login
        is right again, unlock the credential.
      </Note>
    );
  return null;
}

const whoChanges = ({ is_from_document: isFromDocument }: Schedule): string =>
  isFromDocument ? "the Blueprint's document" : "the account's backend";
