import { Button, Code, Group, Stack, Tabs, Text } from "@mantine/core";
import { useState } from "react";
import type { OperatorOperation } from "#contract/operator/operation.ts";
import { planConfig, type listBlueprintVersions, type readBlueprintVersion } from "../api/operations.ts";
import { CURRENT_VERSION_NAME } from "#domain/labels/states.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf, Endpoint, InputOf } from "../api/request.ts";
import { Applied } from "./applied.tsx";
import { AskButton } from "./ask-button.tsx";
import { DataTable, type Column } from "./data-table.tsx";
import { Differences } from "./differences.tsx";
import { FailureNote } from "./failure-note.tsx";
import { DOCUMENT_KEYS } from "./publish-dialog.tsx";
import { Reading } from "./reading.tsx";
import { Mark } from "./run-status.tsx";
import { Section } from "./section.tsx";

type Versions = AnswerOf<typeof listBlueprintVersions>;
type Version = AnswerOf<typeof readBlueprintVersion>;
type Listing = OperatorOperation & {
  readonly answer: NonNullable<(typeof listBlueprintVersions)["operation"]>["answer"];
};
type One = OperatorOperation & {
  readonly answer: NonNullable<(typeof readBlueprintVersion)["operation"]>["answer"];
};

const COLUMNS: readonly Column<Versions["items"][number]>[] = [
  {
    title: "Version",
    cell: ({ version, is_in_force: isInForce }) => (
      <Group gap="sm">
        <Text size="sm" fw={600}>
          {version}
        </Text>
        {isInForce && <Mark tone="good">{CURRENT_VERSION_NAME}</Mark>}
      </Group>
    ),
  },
  {
    title: "Published",
    cell: (each) => <Applied of={each} />,
  },
];

/** A document's versions. Each can be compared with the previous one and published again. */
export function VersionList<L extends Listing, O extends One, P extends OperatorOperation>(props: {
  readonly list: Endpoint<L>;
  readonly listInput: InputOf<L>;
  readonly read: Endpoint<O>;
  readonly inputOf: (version: number) => InputOf<O>;
  readonly publish: Endpoint<P>;
  readonly publishInputOf: (version: number) => InputOf<P>;
}) {
  const { may } = useSignedIn();
  const versions = useRead(props.list, props.listInput);
  const [chosen, setChosen] = useState<number | null>(null);
  return (
    <Stack gap="xl">
      <Reading of={versions}>
        {(data) => (
          <DataTable
            name="Versions"
            rows={(data as Versions).items}
            keyOf={({ version }) => String(version)}
            columns={[
              ...COLUMNS,
              {
                title: "Actions",
                cell: ({ version, is_in_force: isInForce }) => (
                  <Group gap="xs">
                    <Button
                      size="xs"
                      variant="default"
                      aria-label={`View version ${version}`}
                      onClick={() => setChosen(version)}
                    >
                      View
                    </Button>
                    {!isInForce && may("config.apply") && (
                      <AskButton
                        to={props.publish}
                        input={props.publishInputOf(version)}
                        changes={DOCUMENT_KEYS}
                        label="Publish again"
                        of={`version ${version}`}
                        title={`Publish version ${version} again?`}
                        action="Publish"
                        done="Published as a new version."
                      >
                        Its document becomes the new current version. Runs in progress continue with theirs.
                        <Rollback read={props.read} input={props.inputOf(version)} />
                      </AskButton>
                    )}
                  </Group>
                ),
              },
            ]}
          />
        )}
      </Reading>
      {chosen !== null && <OneVersion read={props.read} input={props.inputOf(chosen)} version={chosen} />}
    </Stack>
  );
}

/** What publishing an earlier version changes now. */
function Rollback<O extends One>(props: { readonly read: Endpoint<O>; readonly input: InputOf<O> }) {
  const version = useRead(props.read, props.input);
  const text = (version.data as Version | undefined)?.yaml;
  const plan = useRead(
    planConfig,
    { body: { documents: [{ file: "document.yaml", text: text ?? "" }] } },
    { enabled: text !== undefined },
  );
  if (version.error) return <FailureNote error={version.error} />;
  return (
    <section aria-label="Changes">
      <Reading of={plan}>
        {({ changes }) => <Differences of={changes.flatMap(({ differences }) => differences)} />}
      </Reading>
    </section>
  );
}

function OneVersion<O extends One>(props: {
  readonly read: Endpoint<O>;
  readonly input: InputOf<O>;
  readonly version: number;
}) {
  const version = useRead(props.read, props.input);
  return (
    <Section title={`Version ${props.version}`}>
      <Reading of={version}>
        {(data) => {
          const { against, differences, yaml } = data as Version;
          return (
            <Tabs defaultValue="changes">
              <Tabs.List>
                <Tabs.Tab value="changes">
                  {against === null ? "Changes" : `Since version ${against}`}
                </Tabs.Tab>
                <Tabs.Tab value="document">Document</Tabs.Tab>
              </Tabs.List>
              <Tabs.Panel value="changes" pt="md">
                {against === null ? <Text size="sm">First version</Text> : <Differences of={differences} />}
              </Tabs.Panel>
              <Tabs.Panel value="document" pt="md">
                <Code block tabIndex={0}>
                  {yaml}
                </Code>
              </Tabs.Panel>
            </Tabs>
          );
        }}
      </Reading>
    </Section>
  );
}
