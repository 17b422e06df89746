import { Anchor, Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { ApiFailure } from "../api/failure.ts";
import {
  approveReview,
  listReviews,
  readReview,
  readRun,
  readRunGraph,
  rejectReview,
} from "../api/operations.ts";
import { keyOf, useOperation, useRead } from "../api/queries.ts";
import type { Review, RunGraphData } from "../parts/answers.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { Note } from "../parts/note.tsx";
import { OUTWARD } from "../parts/outward.ts";
import { usePageKey } from "../parts/page-key.ts";
import { ReviewChanges } from "./review-changes.tsx";
import type { ReviewDrafts } from "./review-drafts.ts";
import styles from "./review-record.module.css";

const changes = [keyOf(readReview), keyOf(listReviews), keyOf(readRun)];

/** Buttons to approve or reject, always visible, with a confirmation that explains the consequences. */
export function ReviewDecision({
  review,
  drafts,
  next,
}: {
  readonly review: Review;
  readonly drafts: ReviewDrafts;
  /** The review that is shown after the decision; null: this one. */
  readonly next: Review | null;
}) {
  const [verdict, setVerdict] = useState<"approve" | "reject" | null>(null);
  const [, go] = useLocation();
  const kept = review.records_total - drafts.excludedCount;
  const goOn = (text: string): void => {
    notifications.show({ message: <Decided review={review} text={text} /> });
    drafts.forget();
    if (next) go(`/reviews/${next.id}`);
  };
  usePageKey(
    ({ key, ctrlKey, metaKey }) => key === "Enter" && (ctrlKey || metaKey) && !drafts.hasProblem,
    () => setVerdict("approve"),
  );
  return (
    <>
      <section className={styles["bar"]} aria-label="Decision">
        <div className="grow">
          <Effect review={review} errorsLeft={drafts.errorsLeft} />
          <Text size="sm" c="dimmed" aria-live="polite">
            <Standing of={drafts} />
          </Text>
        </div>
        <Group gap="xs">
          <Button variant="default" onClick={() => setVerdict("reject")}>
            Reject
          </Button>
          <Button
            variant={drafts.errorsLeft > 0 ? "default" : "filled"}
            disabled={drafts.hasProblem}
            title="Ctrl+Enter"
            aria-keyshortcuts="Control+Enter"
            onClick={() => setVerdict("approve")}
          >
            <span>
              Approve {countRecords(kept)}
              {drafts.errorsLeft > 0 && (
                <span className={styles["wrong"]}>, {drafts.errorsLeft} with errors</span>
              )}
            </span>
          </Button>
        </Group>
      </section>
      <ApproveDialog
        isOpen={verdict === "approve"}
        review={review}
        drafts={drafts}
        onDecided={() => goOn("Approved. The run continues.")}
        onClose={() => setVerdict(null)}
      />
      <RejectDialog
        isOpen={verdict === "reject"}
        review={review}
        onDecided={() => goOn("Rejected. The run is cancelled.")}
        onClose={() => setVerdict(null)}
      />
    </>
  );
}

/** What each of the buttons does. */
function Effect({ review, errorsLeft }: { readonly review: Review; readonly errorsLeft: number }) {
  const graph = useRead(readRunGraph, { params: { runId: review.run_id } });
  const edges = graph.data?.edges ?? [];
  const next = new Set(edges.filter(({ from }) => from === review.node).map(({ to }) => to));
  const after = (graph.data?.nodes ?? [])
    .filter(({ id }) => next.has(id))
    .map(({ id, type, name }) => (type === "output" ? "the results" : (name ?? id)));
  const outward = graph.data && sendersAfter(graph.data, review.node);
  return (
    <Text size="sm" className="any-break">
      Approved records go {after.length === 0 ? "on" : <>to {after.join(", ")}</>}, and excluded ones do not.{" "}
      {errorsLeft > 0 && <b>{describeErrors(errorsLeft)} </b>}
      {outward &&
        (outward.length === 0
          ? "Nothing is sent to another system. "
          : `Then ${outward.join(", ")} may write to other systems. `)}
      Rejecting cancels the run.
    </Text>
  );
}

/** Approving makes no record valid: those with errors keep them, and are marked as invalid. */
const describeErrors = (count: number): string =>
  count === 1
    ? "1 record still has errors: it goes with them, marked as invalid."
    : `${count} records still have errors: they go with them, marked as invalid.`;

/** The nodes after one that may send to another system, by their names. */
function sendersAfter({ nodes, edges }: RunGraphData, node: string): readonly string[] {
  const reached = new Set([node]);
  for (const from of reached) for (const edge of edges) if (edge.from === from) reached.add(edge.to);
  reached.delete(node);
  return nodes
    .filter(({ id, type }) => reached.has(id) && OUTWARD.has(type))
    .map(({ id, name }) => name ?? id);
}

/** After the decision another review may be shown. */
const Decided = ({ review, text }: { readonly review: Review; readonly text: string }) => (
  <>
    {text}{" "}
    <Anchor component={Link} href={`/runs/${review.run_id}`} size="sm">
      {review.run_name ?? "Show the run"}
    </Anchor>
  </>
);

/** What was changed; the errors that are left are on the button, and only heard here. */
function Standing({ of: drafts }: { readonly of: ReviewDrafts }) {
  if (drafts.hasProblem) return "Some edits are invalid; they are marked.";
  const { errorsLeft } = drafts;
  const changed = listChanges(drafts).join(", ");
  if (errorsLeft === 0) return changed || "No changes";
  return (
    <>
      <span className="heard">
        {countRecords(errorsLeft)} with errors{changed && ", "}
      </span>
      {changed}
    </>
  );
}

const listChanges = ({ editedCount, excludedCount }: ReviewDrafts): readonly string[] => [
  ...(editedCount > 0 ? [`${editedCount} edited`] : []),
  ...(excludedCount > 0 ? [`${excludedCount} excluded`] : []),
];

const countRecords = (count: number): string => `${count} ${count === 1 ? "record" : "records"}`;

interface DialogProps {
  readonly isOpen: boolean;
  readonly review: Review;
  readonly onDecided: () => void;
  readonly onClose: () => void;
}

function ApproveDialog(props: DialogProps & { readonly drafts: ReviewDrafts }) {
  const { review, drafts } = props;
  const [reason, setReason] = useState("");
  const approving = useOperation(approveReview, {
    changes,
    onDone: props.onDecided,
  });
  const approve = (excludesInvalid: boolean): void =>
    approving.mutate({
      params: { reviewId: review.id },
      body: {
        edits: drafts.edits(),
        exclude: drafts.exclusions(),
        ...(excludesInvalid ? { exclude_invalid: true } : {}),
        ...(reason === "" ? {} : { reason }),
      },
    });
  const kept = review.records_total - drafts.excludedCount;
  const { errorsLeft } = drafts;
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title="Approve?"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack gap="md">
        {errorsLeft > 0 && <ErrorsLeft count={errorsLeft} />}
        <Text size="sm">{describeOutcome(drafts, kept)}</Text>
        <ReviewChanges drafts={drafts} />
        {approving.failure && <FailureNote error={named(approving.failure, drafts)} />}
        <Textarea
          label="Reason"
          description="Optional"
          data-autofocus={errorsLeft === 0 || undefined}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button
            variant={errorsLeft > 0 ? "filled" : "default"}
            data-autofocus={errorsLeft > 0 || undefined}
            onClick={props.onClose}
          >
            Cancel
          </Button>
          {errorsLeft > 0 && errorsLeft < kept && (
            <Button variant="default" loading={approving.isPending} onClick={() => approve(true)}>
              Exclude {errorsLeft} and approve
            </Button>
          )}
          <Button
            variant={errorsLeft > 0 ? "default" : "filled"}
            loading={approving.isPending}
            onClick={() => approve(false)}
          >
            {errorsLeft > 0 ? "Approve with errors" : "Approve"}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function ErrorsLeft({ count }: { readonly count: number }) {
  const them = count === 1 ? "it" : "them";
  return (
    <Note tone="waiting" title={`${countRecords(count)} still ${count === 1 ? "has" : "have"} errors`}>
      Cancel to correct {them}, exclude {them}, or let the run continue with {them}.
    </Note>
  );
}

function describeOutcome(drafts: ReviewDrafts, kept: number): string {
  const { errorsLeft } = drafts;
  const changes = listChanges(drafts);
  const changed = changes.length === 0 ? "No changes." : `${changes.join(", ")}.`;
  return errorsLeft === 0 || errorsLeft === kept
    ? `The run continues with ${countRecords(kept)}. ${changed}`
    : `The run continues with all ${countRecords(kept)}, or with ${kept - errorsLeft} if those with errors are excluded. ${changed}`;
}

/** The API refers to edits by their index; people need the numbers of the records. */
function named(failure: Error, drafts: ReviewDrafts): Error {
  if (!(failure instanceof ApiFailure) || failure.details.length === 0) return failure;
  const edits = drafts.edits();
  const excluded = drafts.exclusions();
  const details = failure.details.map((detail) => {
    const [, list, at] = /^(edits|exclude)\.(\d+)$/.exec(detail.field ?? "") ?? [];
    const ordinal = list === "edits" ? edits[Number(at)]?.ordinal : excluded[Number(at)];
    return ordinal === undefined
      ? detail
      : { ...detail, message: `Record ${ordinal + 1}: ${detail.message}` };
  });
  return new ApiFailure(failure.status, failure.message, { details });
}

function RejectDialog(props: DialogProps) {
  const [reason, setReason] = useState("");
  const rejecting = useOperation(rejectReview, {
    changes,
    onDone: props.onDecided,
  });
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title="Reject?"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          rejecting.mutate({ params: { reviewId: props.review.id }, body: { reason } });
        }}
      >
        <Stack gap="md">
          <Text size="sm">The run is cancelled; no further steps are executed.</Text>
          {rejecting.failure && <FailureNote error={rejecting.failure} />}
          <Textarea
            label="Reason"
            required
            data-autofocus
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={props.onClose}>
              Cancel
            </Button>
            <Button type="submit" color="red.9" loading={rejecting.isPending}>
              Reject
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
