import { Alert, Button, Group, Modal, SimpleGrid, Stack, Text } from "@mantine/core";
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
import { Time } from "./time.tsx";

type Changes = AnswerOf<typeof applyConfig>["changes"];

/** The data that a new version of a document changes. */
export const DOCUMENT_KEYS = [
  keyOf(listBlueprints),
  keyOf(readBlueprint),
  keyOf(listBlueprintVersions),
  keyOf(listStrategies),
  keyOf(readStrategy),
  keyOf(listStrategyVersions),
] as const;

/** Previews the changes of a document, and asks for confirmation. */
export function PublishDialog(props: {
  /** Null: it is closed. */
  readonly text: string | null;
  /** The version that the text is based on; 0: it is new. */
  readonly baseVersion: number;
  /** It was published or proposed. */
  readonly onTaken: () => void;
  readonly onClose: () => void;
  readonly onPublished: (changes: Changes) => void;
}) {
  const documents = [{ file: "document.yaml", text: props.text ?? "" }];
  const plan = useRead(
    planConfig,
    { body: { documents, base_version: props.baseVersion } },
    { enabled: props.text !== null },
  );
  const conflict = plan.data?.conflict ?? null;
  const [, go] = useLocation();
  const publishing = useOperation(applyConfig, {
    // Another version may have been published just now; then the plan reports it.
    changes: [...DOCUMENT_KEYS, keyOf(listProposals), keyOf(planConfig)],
    onDone: ({ changes, warnings, proposal }) => {
      props.onTaken();
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
        {conflict !== null && conflict.version > 0 && (
          <Conflict of={conflict} baseVersion={props.baseVersion} />
        )}
        <Reading of={plan}>{(data) => <Planned plan={data} />}</Reading>
        <Text size="sm" c="dimmed">
          {plan.data?.changes.every(({ change }) => change === "unchanged") === true
            ? "Only comments or the layout differ. They are stored with the current version."
            : "This publishes a new version. Runs in progress continue with theirs."}
        </Text>
        {publishing.failure && <FailureNote error={publishing.failure} />}
        <Group justify="flex-end">
          <Button variant="default" data-autofocus onClick={props.onClose}>
            Keep editing
          </Button>
          <Button
            loading={publishing.isPending}
            disabled={plan.data === undefined}
            {...(conflict === null ? {} : { color: "red.9" })}
            onClick={() =>
              publishing.mutate({
                body: { documents, base_version: conflict?.version ?? props.baseVersion },
              })
            }
          >
            {plan.data !== undefined && plan.data.needs.length > 0 ? "Propose" : "Publish"}
            {conflict !== null && conflict.version > 0 && ` over version ${conflict.version}`}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

type ConflictData = NonNullable<AnswerOf<typeof planConfig>["conflict"]>;

/** What both have changed since their common base version. */
function Conflict({ of, baseVersion }: { readonly of: ConflictData; readonly baseVersion: number }) {
  const by = of.applied_by ?? "The command line";
  return (
    <Note tone="bad" title={`${by} published version ${of.version}`} isAlert>
      {of.applied_at !== null && (
        <Text size="sm">
          Published <Time at={of.applied_at} />.{" "}
          {baseVersion === 0
            ? "A document of this name exists already. If you publish, yours replaces it."
            : `Your changes are based on version ${baseVersion}. If you publish, your document replaces version ${of.version} with all of its changes.`}
        </Text>
      )}
      {baseVersion > 0 && (
        <SimpleGrid cols={{ base: 1, sm: 2 }} mt="sm">
          <section aria-label={`Changes in version ${of.version}`}>
            <Text fw={600} size="sm">
              Changes in version {of.version}
            </Text>
            <Differences of={of.theirs} />
          </section>
          <section aria-label="Your changes">
            <Text fw={600} size="sm">
              Your changes
            </Text>
            <Differences of={of.ours} />
          </section>
        </SimpleGrid>
      )}
    </Note>
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
