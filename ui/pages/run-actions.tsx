import { cancelRun, listRuns, purgeRun, readRun } from "../api/operations.ts";
import { keyOf, useSignedIn } from "../api/queries.ts";
import type { Run } from "../parts/answers.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { RunAgainButton } from "./run-again.tsx";

/** What this operator may do with a run as it stands. */
export function RunActions({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  const isOver = run.ended_at !== null;
  return (
    <>
      {isOver && run.blueprint !== null && may("run.trigger") && <RunAgainButton run={run} />}
      {!isOver && may("run.cancel") && <CancelButton run={run} />}
      {isOver && run.purged_at === null && may("run.purge") && <PurgeButton run={run} />}
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
      title="Cancel the run?"
      action="Cancel the run"
      done="The run is cancelled."
    >
      It ends at the next safe point. Writes to other systems that it has made stay.
    </AskButton>
  );
}

function PurgeButton({ run }: { readonly run: Run }) {
  return (
    <AskButton
      to={purgeRun}
      input={{ params: { runId: run.id } }}
      changes={changes}
      size="sm"
      label="Purge now"
      title="Purge this run's data?"
      action="Purge permanently"
      done="The run's data is purged."
    >
      Inputs, results, reviews and what the steps gave are deleted at once, before the retention is over, and
      can&apos;t be brought back. The run stays in the list.
    </AskButton>
  );
}
