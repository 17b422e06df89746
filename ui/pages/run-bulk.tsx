import { Button, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { explainFailure } from "../api/failure.ts";
import { cancelRun, listRuns, readRunAgain, runAgain } from "../api/operations.ts";
import { keyOf, useSignedIn } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { Cancelled } from "../api/step-up.ts";
import type { ListedRun } from "../parts/answers.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Note } from "../parts/note.tsx";
import { Reading } from "../parts/reading.tsx";
import { newKey } from "./run-again.tsx";

interface Outcome {
  readonly done: number;
  readonly refused: readonly string[];
}

const runsText = (count: number): string => `${count} ${count === 1 ? "run" : "runs"}`;

/** What can be done with the selected runs. */
export function RunBulk({
  runs,
  onClear,
}: {
  readonly runs: readonly ListedRun[];
  readonly onClear: () => void;
}) {
  const { may } = useSignedIn();
  const [asked, setAsked] = useState<"again" | "cancel" | null>(null);
  const [outcome, setOutcome] = useState<string | null>(null);
  const [refused, setRefused] = useState<readonly string[]>([]);
  const over = runs.filter(({ ended_at: at, blueprint }) => at !== null && blueprint !== null);
  const open = runs.filter(({ ended_at: at }) => at === null);
  const close = (text: string, { refused: reasons }: Outcome): void => {
    setAsked(null);
    setOutcome(text);
    setRefused(reasons);
  };
  return (
    <Stack gap="xs" mb="sm" component="section" aria-label="Selected runs">
      <Group gap="xs">
        <Text size="sm" fw={600} component="output">
          {runsText(runs.length)} selected
        </Text>
        {may("run.trigger") && over.length > 0 && (
          <Button size="xs" variant="default" onClick={() => setAsked("again")}>
            Run {over.length} again
          </Button>
        )}
        {may("run.cancel") && open.length > 0 && (
          <Button size="xs" variant="default" onClick={() => setAsked("cancel")}>
            Cancel {open.length}
          </Button>
        )}
        <Button size="xs" variant="subtle" onClick={onClear}>
          Clear selection
        </Button>
      </Group>
      {outcome !== null && (
        <Note tone={refused.length > 0 ? "bad" : "good"} title={outcome} isAlert>
          {refused.map((reason) => (
            <div key={reason}>{reason}</div>
          ))}
        </Note>
      )}
      {asked === "again" && (
        <AgainDialog
          runs={over}
          onClose={() => setAsked(null)}
          onDone={(done) => close(`${runsText(done.done)} started`, done)}
        />
      )}
      {asked === "cancel" && (
        <CancelDialog
          runs={open}
          onClose={() => setAsked(null)}
          onDone={(done) => close(`${runsText(done.done)} cancelled`, done)}
        />
      )}
    </Stack>
  );
}

interface DialogProps {
  readonly runs: readonly ListedRun[];
  readonly onClose: () => void;
  readonly onDone: (outcome: Outcome) => void;
}

/** One after the other; a refusal does not stop the others, but a second factor that is not given does. */
function useEach<T>(act: (item: T) => Promise<string | null>, onDone: DialogProps["onDone"]) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (items: readonly T[]): Promise<Outcome> => {
      let done = 0;
      const refused: string[] = [];
      for (const item of items) {
        const reason = await act(item);
        if (reason === null) done++;
        else refused.push(reason);
      }
      return { done, refused };
    },
    onSuccess: onDone,
    onSettled: async () => await client.invalidateQueries({ queryKey: [...keyOf(listRuns)] }),
  });
}

const named = (run: ListedRun, error: unknown): string => {
  if (error instanceof Cancelled) throw error;
  return `${run.name ?? run.id}: ${explainFailure(error).message}`;
};

function CancelDialog({ runs, onClose, onDone }: DialogProps) {
  const cancelling = useEach<ListedRun>(async (run) => {
    try {
      await call(cancelRun, { params: { runId: run.id } });
      return null;
    } catch (error) {
      return named(run, error);
    }
  }, onDone);
  return (
    <Confirm
      isOpen
      title={`Cancel ${runsText(runs.length)}?`}
      action={`Cancel ${runsText(runs.length)}`}
      dismiss="Keep them"
      isBusy={cancelling.isPending}
      failure={cancelling.error instanceof Cancelled ? null : cancelling.error}
      onConfirm={() => cancelling.mutate(runs)}
      onClose={onClose}
    >
      They stop at the next safe point. Writes that they have already made to other systems are not undone.
    </Confirm>
  );
}

interface Plan {
  readonly run: ListedRun;
  readonly version: number | null;
  readonly writes: readonly string[];
  readonly obstacle: string | null;
  /** One per decision, so that a second click has no effect. */
  readonly key: string;
}

function AgainDialog({ runs, onClose, onDone }: DialogProps) {
  const [decision] = useState(newKey);
  const plans = useQuery({
    queryKey: ["run again", decision],
    staleTime: Infinity,
    queryFn: async (): Promise<readonly Plan[]> =>
      await Promise.all(
        runs.map(async (run) => {
          const plan = await call(readRunAgain, { params: { runId: run.id } });
          const { blueprint_version: version, writes, obstacle } = plan;
          return { run, version, writes, obstacle, key: newKey() };
        }),
      ),
  });
  const possible = (plans.data ?? []).filter(({ obstacle }) => obstacle === null);
  const writing = possible.filter(({ writes }) => writes.length > 0);
  const repeating = useEach<Plan>(async ({ run, version, writes, key }) => {
    try {
      await call(runAgain, {
        params: { runId: run.id },
        body: {
          ...(version === null ? {} : { blueprint_version: version }),
          may_write: writes.length > 0,
          idempotency_key: key,
        },
      });
      return null;
    } catch (error) {
      return named(run, error);
    }
  }, onDone);
  return (
    <Confirm
      isOpen
      title={`Run ${runsText(runs.length)} again?`}
      action={writing.length > 0 ? "Run again, and write again" : "Run again"}
      isBusy={repeating.isPending}
      isBlocked={possible.length === 0}
      isHarmless={writing.length === 0}
      failure={repeating.error instanceof Cancelled ? null : repeating.error}
      onConfirm={() => repeating.mutate(possible)}
      onClose={onClose}
    >
      <Reading of={plans}>
        {(all) => (
          <Stack gap="sm">
            <Text size="sm">
              {runsText(possible.length)} {possible.length === 1 ? "is" : "are"} started with the same inputs,
              credentials, names and metadata, on the current version of the Blueprint.
            </Text>
            {writing.length > 0 && (
              <Note tone="bad" title={`${runsText(writing.length)} write to other systems again`}>
                The writes of {[...new Set(writing.flatMap(({ writes }) => writes))].join(", ")} may be made a
                second time.
              </Note>
            )}
            {all
              .filter(({ obstacle }) => obstacle !== null)
              .map(({ run, obstacle }) => (
                <Text key={run.id} size="sm">
                  {run.name ?? run.id} can&apos;t be run again: {obstacle}
                </Text>
              ))}
          </Stack>
        )}
      </Reading>
    </Confirm>
  );
}
