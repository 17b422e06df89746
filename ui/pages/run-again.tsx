import { Button, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { useLocation } from "wouter";
import { listRuns, readRun, readRunAgain, runAgain } from "../api/operations.ts";
import { keyOf, useOperation, useRead } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import type { Run } from "../parts/answers.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Note } from "../parts/note.tsx";
import { Reading } from "../parts/reading.tsx";

type Again = AnswerOf<typeof readRunAgain>;

/** One key per decision, so that a second click has no effect. `crypto.randomUUID` is not available without TLS. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );

export function RunAgainButton({
  run,
  size = "sm",
  isPrimary = false,
  label = "Run again",
  obstacle = null,
}: {
  readonly run: Run;
  readonly size?: "xs" | "sm";
  /** Whether it is the recommended step. */
  readonly isPrimary?: boolean;
  readonly label?: string;
  /** Why not now, and what helps. */
  readonly obstacle?: string | null;
}) {
  const [key, setKey] = useState<string | null>(null);
  const [, go] = useLocation();
  const input = { params: { runId: run.id } };
  const plan = useRead(readRunAgain, input, { enabled: key !== null });
  const repeating = useOperation(runAgain, {
    changes: [keyOf(readRun), keyOf(listRuns), keyOf(readRunAgain)],
    onDone: ({ id }) => {
      setKey(null);
      notifications.show({ message: "A new run was started." });
      go(`/runs/${id}`);
    },
  });
  const writes = (plan.data?.writes ?? []).length > 0;
  const start = (): void => {
    const version = plan.data?.blueprint_version ?? null;
    if (key === null || version === null) return;
    const body = {
      blueprint_version: version,
      may_write: writes,
      idempotency_key: key,
    };
    repeating.mutate({ ...input, body });
  };
  return (
    <>
      <Button
        variant={isPrimary && obstacle === null ? "filled" : "default"}
        size={size}
        disabled={obstacle !== null}
        onClick={() => setKey(newKey())}
      >
        {label}
      </Button>
      {obstacle !== null && (
        <Text size="sm" c="dimmed">
          {obstacle}
        </Text>
      )}
      <Confirm
        isOpen={key !== null}
        title="Run again?"
        action={writes ? "Run again, and write again" : "Run again"}
        isBusy={repeating.isPending}
        isBlocked={plan.data === undefined || plan.data.obstacle !== null}
        isHarmless={!writes}
        failure={repeating.failure}
        onConfirm={start}
        onClose={() => setKey(null)}
      >
        <Reading of={plan}>{(again) => <AgainText again={again} run={run} />}</Reading>
      </Confirm>
    </>
  );
}

function AgainText({ again, run }: { readonly again: Again; readonly run: Run }) {
  const wrong = run.records_with_errors ?? 0;
  if (again.obstacle !== null)
    return (
      <Note tone="bad" title="It can't be run again">
        {again.obstacle}
      </Note>
    );
  return (
    <Stack gap="sm">
      {run.name !== null && (
        <Text size="sm" fw={600} className="any-break">
          {run.name}
        </Text>
      )}
      <Text size="sm">
        This starts a new run with the same inputs, credentials, name and metadata,{" "}
        {again.blueprint_version === again.previous_version
          ? `on the same version ${again.blueprint_version}.`
          : `on version ${again.blueprint_version}, the current one. This run used version ${again.previous_version}.`}
      </Text>
      {wrong > 0 && again.blueprint_version === again.previous_version && (
        <Text size="sm">
          The {wrong.toLocaleString("en")} records with errors come back, unless the source has changed.
        </Text>
      )}
      {again.ignored_keys.length > 0 && (
        <Text size="sm">
          Version {again.blueprint_version} does not know {again.ignored_keys.join(", ")}: that changes
          nothing any more.
        </Text>
      )}
      {again.writes.length === 0 ? (
        <Text size="sm">It writes nothing to other systems.</Text>
      ) : (
        <Note tone="bad" title="This run writes to other systems again">
          The writes of {again.writes.join(", ")} in this run may be made a second time.
        </Note>
      )}
    </Stack>
  );
}
