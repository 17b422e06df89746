import { Button, Group, Modal, Stack, Text, Textarea } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { ApiFailure } from "../api/failure.ts";
import { approveReview, listReviews, readReview, readRun, rejectReview } from "../api/operations.ts";
import { keyOf, useOperation } from "../api/queries.ts";
import type { Review } from "../parts/answers.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import type { Drafts } from "./review-drafts.ts";
import styles from "./review-record.module.css";

const changes = [keyOf(readReview), keyOf(listReviews), keyOf(readRun)];

/** Approve or reject, always in reach; then once more, with what it means. */
export function ReviewDecision({ review, drafts }: { readonly review: Review; readonly drafts: Drafts }) {
  const [verdict, setVerdict] = useState<"approve" | "reject" | null>(null);
  return (
    <>
      <section className={styles["bar"]} aria-label="Decision">
        <Text size="sm" aria-live="polite">
          {describe(drafts)}
        </Text>
        <Group gap="xs">
          <Button variant="default" onClick={() => setVerdict("reject")}>
            Reject
          </Button>
          <Button disabled={drafts.hasProblem} onClick={() => setVerdict("approve")}>
            Approve
          </Button>
        </Group>
      </section>
      <ApproveDialog
        isOpen={verdict === "approve"}
        review={review}
        drafts={drafts}
        onClose={() => setVerdict(null)}
      />
      <RejectDialog isOpen={verdict === "reject"} review={review} onClose={() => setVerdict(null)} />
    </>
  );
}

function describe(drafts: Drafts): string {
  if (drafts.hasProblem) return "Some edits are invalid; they are marked.";
  const parts = [
    ...(drafts.editedCount > 0 ? [`${drafts.editedCount} edited`] : []),
    ...(drafts.excluded.size > 0 ? [`${drafts.excluded.size} excluded`] : []),
  ];
  return parts.length === 0 ? "No changes" : parts.join(", ");
}

interface DialogProps {
  readonly isOpen: boolean;
  readonly review: Review;
  readonly onClose: () => void;
}

function ApproveDialog(props: DialogProps & { readonly drafts: Drafts }) {
  const { review, drafts } = props;
  const [reason, setReason] = useState("");
  const approving = useOperation(approveReview, {
    changes,
    onDone: () => notifications.show({ message: "Approved. The run continues." }),
  });
  const approve = (): void =>
    approving.mutate({
      params: { reviewId: review.id },
      body: {
        edits: drafts.edits(),
        exclude: [...drafts.excluded],
        ...(reason === "" ? {} : { reason }),
      },
    });
  const kept = review.records_total - drafts.excluded.size;
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title="Approve?"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack gap="md">
        <Text size="sm">
          The run continues with {kept} {kept === 1 ? "record" : "records"}. {describe(drafts)}
        </Text>
        {approving.failure && <FailureNote error={named(approving.failure, drafts)} />}
        <Textarea
          label="Reason"
          description="Optional"
          data-autofocus
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={props.onClose}>
            Back
          </Button>
          <Button loading={approving.isPending} onClick={approve}>
            Approve
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** The API speaks of the places of edits; people of the records that they see. */
function named(failure: Error, drafts: Drafts): Error {
  if (!(failure instanceof ApiFailure) || failure.details.length === 0) return failure;
  const edits = drafts.edits();
  const excluded = [...drafts.excluded];
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
    onDone: () => notifications.show({ message: "Rejected. The run is cancelled." }),
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
              Back
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
