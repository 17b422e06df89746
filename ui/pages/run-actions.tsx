import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { cancelRun, listRuns, purgeRun, readRun } from "../api/operations.ts";
import { keyOf, useOperation, useSignedIn } from "../api/queries.ts";
import type { Run } from "../parts/answers.ts";
import { RunAgainButton } from "./run-again.tsx";
import { Confirm } from "../parts/confirm.tsx";

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
  const [isAsking, setIsAsking] = useState(false);
  const cancelling = useOperation(cancelRun, {
    changes,
    onDone: () => {
      setIsAsking(false);
      notifications.show({ message: "The run is cancelled." });
    },
  });
  return (
    <>
      <Button variant="default" onClick={() => setIsAsking(true)}>
        Cancel the run
      </Button>
      <Confirm
        isOpen={isAsking}
        title="Cancel the run?"
        action="Cancel the run"
        isBusy={cancelling.isPending}
        failure={cancelling.failure}
        onConfirm={() => cancelling.mutate({ params: { runId: run.id } })}
        onClose={() => setIsAsking(false)}
      >
        It ends at the next safe point. Writes to other systems that it has made stay.
      </Confirm>
    </>
  );
}

function PurgeButton({ run }: { readonly run: Run }) {
  const [isAsking, setIsAsking] = useState(false);
  const purging = useOperation(purgeRun, {
    changes,
    onDone: () => {
      setIsAsking(false);
      notifications.show({ message: "The run's data is purged." });
    },
  });
  return (
    <>
      <Button variant="default" onClick={() => setIsAsking(true)}>
        Purge now
      </Button>
      <Confirm
        isOpen={isAsking}
        title="Purge this run's data?"
        action="Purge permanently"
        isBusy={purging.isPending}
        failure={purging.failure}
        onConfirm={() => purging.mutate({ params: { runId: run.id } })}
        onClose={() => setIsAsking(false)}
      >
        Inputs, results, reviews and what the steps gave are deleted at once, before the retention is over,
        and can't be brought back. The run stays in the list.
      </Confirm>
    </>
  );
}
