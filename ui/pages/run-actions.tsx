import { cancelRun, listRuns, purgeRun, readRun } from "../api/operations.ts";
import { keyOf, useSignedIn } from "../api/queries.ts";
import type { Run } from "../parts/answers.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { RunAgainButton } from "./run-again.tsx";

/** The actions that this operator may take on a run in its current state. */
export function RunActions({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  const isOver = run.ended_at !== null;
  return (
    <>
      {isOver && run.status !== "failed" && run.blueprint !== null && may("run.trigger") && (
        <RunAgainButton run={run} />
      )}
      {!isOver && may("run.cancel") && <CancelButton run={run} />}
    </>
  );
}

const changes = [keyOf(readRun), keyOf(listRuns)];

function CancelButton({ run }: { readonly run: Run }) {
  return (
    <AskButton
      to={cancelRun}
      input={{ params: { runId: run.id } }}
      changes={changes}
      size="sm"
      label="Cancel the run"
      title="Cancel this run?"
      action="Cancel the run"
      done="The run was cancelled."
    >
      It stops at the next safe point. Writes that it has already made to other systems are not undone.
    </AskButton>
  );
}

/** Apart from the others: on a phone it must not be above the error. */
export function PurgeButton({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  if (run.ended_at === null || run.purged_at !== null || !may("run.purge")) return null;
  return (
    <AskButton
      to={purgeRun}
      input={{ params: { runId: run.id } }}
      changes={changes}
      isDanger
      label="Purge now"
      title="Purge this run's data?"
      action="Purge permanently"
      done="The run's data was purged."
    >
      Inputs, results, reviews and step outputs are deleted now, before the retention period ends, and
      can&apos;t be brought back. The run stays in the list.
    </AskButton>
  );
}
