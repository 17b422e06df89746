import { Alert, Button, Group, Modal, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useLocation } from "wouter";
import {
  applyConfig,
  listBlueprints,
  listBlueprintVersions,
  listProposals,
  listStrategies,
  listStrategyVersions,
  planConfig,
  readBlueprint,
  readStrategy,
} from "../api/operations.ts";
import { keyOf, useOperation, useRead } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { Differences } from "./differences.tsx";
import { FailureNote } from "./failure-note.tsx";
import { Note } from "./note.tsx";
import { sayProposed } from "./proposed.ts";
import { Reading } from "./reading.tsx";

type Changes = AnswerOf<typeof applyConfig>["changes"];

/** What another version of a document changes on pages. */
export const DOCUMENT_KEYS = [
  keyOf(listBlueprints),
  keyOf(readBlueprint),
  keyOf(listBlueprintVersions),
  keyOf(listStrategies),
  keyOf(readStrategy),
  keyOf(listStrategyVersions),
] as const;

/** What would change, place by place, before it does. */
export function PublishDialog(props: {
  /** Null: it is closed. */
  readonly text: string | null;
  readonly onClose: () => void;
  readonly onPublished: (changes: Changes) => void;
}) {
  const documents = [{ file: "document.yaml", text: props.text ?? "" }];
  const plan = useRead(planConfig, { body: { documents } }, { enabled: props.text !== null });
  const [, go] = useLocation();
  const publishing = useOperation(applyConfig, {
    changes: [...DOCUMENT_KEYS, keyOf(listProposals)],
    onDone: ({ changes, warnings, proposal }) => {
      if (proposal) {
        notifications.show({ message: sayProposed(proposal) });
        return go(`/proposals/${proposal.id}`);
      }
      notifications.show({ message: ["Published.", ...warnings].join(" ") });
      props.onPublished(changes);
    },
  });
  return (
    <Modal
      opened={props.text !== null}
      onClose={props.onClose}
      title="Review changes"
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack gap="md">
        <Reading of={plan}>{(data) => <Planned plan={data} />}</Reading>
        <Text size="sm" c="dimmed">
          This publishes a new version. Runs in progress continue with theirs.
        </Text>
        {publishing.failure && <FailureNote error={publishing.failure} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={props.onClose}>
            Keep editing
          </Button>
          <Button
            loading={publishing.isPending}
            disabled={plan.data === undefined}
            onClick={() => publishing.mutate({ body: { documents } })}
          >
            {plan.data !== undefined && plan.data.needs.length > 0 ? "Propose" : "Publish"}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

function Planned({ plan: { changes, warnings, needs } }: { readonly plan: AnswerOf<typeof planConfig> }) {
  return (
    <>
      {needs.length > 0 && (
        <Note tone="waiting" title="Another admin must confirm it">
          {needs.join(" ")}
        </Note>
      )}
      {warnings.map((warning) => (
        <Alert key={warning} color="yellow" role="note" p="sm">
          {warning}
        </Alert>
      ))}
      {changes.map((change) => (
        <section key={`${change.kind} ${change.id}`} aria-label={change.id}>
          <Text fw={600} size="sm">
            {VERBS[change.change]} {change.kind} {change.id} of {change.account}
          </Text>
          <Differences of={change.differences} />
        </section>
      ))}
    </>
  );
}

const VERBS = {
  create: "Create the",
  update: "Change the",
  retire: "Retire the",
  unchanged: "No change to the",
} as const;
