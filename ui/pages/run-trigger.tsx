import { Anchor, SimpleGrid, Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useSignedIn } from "../api/queries.ts";
import type { Run } from "../parts/answers.ts";
import { LinkIf } from "../parts/link-if.tsx";
import { Section } from "../parts/section.tsx";

/** What the trigger brought, apart from the metadata at the page's head. Without anything, it takes no place. */
export function TriggerContent({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  const sections = [run.ignored_keys, run.inputs, run.credentials].filter((each) => each.length > 0);
  if (sections.length === 0) return null;
  return (
    <SimpleGrid cols={{ base: 1, lg: Math.min(sections.length, 2) }} spacing="xl">
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
      {run.inputs.length > 0 && (
        <Section title="Inputs">
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
        </Section>
      )}
      {run.credentials.length > 0 && (
        <Section title="Credentials">
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
        </Section>
      )}
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
