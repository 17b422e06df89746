import { Anchor, Group, SimpleGrid, Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useSignedIn } from "../api/queries.ts";
import type { Run } from "../parts/answers.ts";
import { Facts } from "../parts/facts.tsx";
import { LinkIf } from "../parts/link-if.tsx";
import { Section } from "../parts/section.tsx";

/** What the trigger brought: inputs, metadata, credentials, and what nobody asked for. */
export function TriggerContent({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  const metadata = Object.entries(run.metadata);
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="xl">
      {run.ignored_keys.length > 0 && (
        <Section title="Ignored keys">
          <Text size="sm" c="dimmed" mb="sm">
            The trigger contained keys that the Blueprint does not define. They were ignored.
          </Text>
          <Rows
            heads={["Key", "Did you mean"]}
            rows={run.ignored_keys.map(({ name, did_you_mean: nearest }) => [name, nearest ?? "–"])}
          />
        </Section>
      )}
      <Section title="Metadata">
        {metadata.length === 0 ? <None>The trigger had none.</None> : <Facts of={metadata} />}
      </Section>
      <Section title="Inputs">
        {run.inputs.length === 0 ? (
          <None>{run.purged_at === null ? "The trigger had none." : "Purged."}</None>
        ) : (
          <Rows
            heads={["Input", "Kind", "Size"]}
            rows={run.inputs.map((input) => [
              <span key="name">
                {input.ref_key}
                {input.filename !== null && (
                  <Text size="xs" c="dimmed" component="span" display="block">
                    {input.filename}
                  </Text>
                )}
              </span>,
              input.kind,
              formatBytes(input.size_bytes),
            ])}
          />
        )}
      </Section>
      <Section title="Credentials">
        {run.credentials.length === 0 ? (
          <None>The Blueprint needs none.</None>
        ) : (
          <Rows
            heads={["Slot", "Credential", "Strategy"]}
            rows={run.credentials.map((each) => [
              each.slot,
              <CredentialName key="name" of={each} />,
              may("config.read") ? (
                <Anchor
                  key="strategy"
                  component={Link}
                  href={`/strategies/${run.account}/${each.strategy}?tab=credentials`}
                  size="sm"
                >
                  {each.strategy}, version {each.strategy_version}
                </Anchor>
              ) : (
                `${each.strategy}, version ${each.strategy_version}`
              ),
            ])}
          />
        )}
      </Section>
    </SimpleGrid>
  );
}

/** A link to it while it exists. */
function CredentialName({
  of: { credential_id: id, name, is_deleted: isDeleted },
}: {
  readonly of: Run["credentials"][number];
}) {
  const { may } = useSignedIn();
  return <LinkIf to={!isDeleted && may("credential.read") && `/credentials/${id}`}>{name ?? id}</LinkIf>;
}

const None = ({ children }: { readonly children: ReactNode }) => (
  <Group>
    <Text size="sm" c="dimmed">
      {children}
    </Text>
  </Group>
);

function Rows({
  heads,
  rows,
}: {
  readonly heads: readonly string[];
  readonly rows: readonly (readonly ReactNode[])[];
}) {
  return (
    <Table verticalSpacing="xs" className="any-break">
      <Table.Thead>
        <Table.Tr>
          {heads.map((head) => (
            <Table.Th key={head}>{head}</Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map((cells, row) => (
          <Table.Tr key={row}>
            {cells.map((cell, column) => (
              <Table.Td key={heads[column]}>{cell}</Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
