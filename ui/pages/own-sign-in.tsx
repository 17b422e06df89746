import { Button, Paper, SimpleGrid, Stack, Table, Text, Title, VisuallyHidden } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { endOwnSession, listOwnSessions } from "../api/operations.ts";
import { endSession, keyOf, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import { browserName } from "../parts/browser-name.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PasswordForm } from "../parts/password-form.tsx";
import { Reading } from "../parts/reading.tsx";
import { Time } from "../parts/time.tsx";
import { NewSecondFactor } from "../shell/new-second-factor.tsx";
import { RecoveryCodes } from "./recovery-codes.tsx";

export function OwnSignInPage() {
  const me = useSignedIn();
  return (
    <>
      <PageHead title="Your account" about={`${me.email}, ${me.role}`}>
        <Button variant="default" onClick={() => void endSession()}>
          Sign out
        </Button>
      </PageHead>
      <Stack gap="lg">
        <SimpleGrid cols={{ base: 1, md: 2 }}>
          <Paper withBorder radius="lg" p="lg">
            <Title order={2} mb="md">
              Password
            </Title>
            <PasswordForm
              onDone={() =>
                notifications.show({ message: "Your password was changed and your other sessions ended." })
              }
            />
          </Paper>
          <Paper withBorder radius="lg" p="lg">
            <Title order={2} mb="md">
              Second factor
            </Title>
            {me.has_second_factor ? <RecoveryCodes /> : <NewSecondFactor />}
          </Paper>
        </SimpleGrid>
        <OwnSessions />
      </Stack>
    </>
  );
}

function OwnSessions() {
  const sessions = useRead(listOwnSessions, {});
  const ending = useOperation(endOwnSession, { changes: [keyOf(listOwnSessions)] });
  return (
    <section aria-labelledby="sessions">
      <Title order={2} id="sessions" mb="sm">
        Active sessions
      </Title>
      {ending.failure && <FailureNote error={ending.failure} />}
      <Reading of={sessions}>
        {({ items }) => (
          <Paper withBorder radius="lg" className="table-card">
            <Table verticalSpacing="sm" horizontalSpacing="md">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Browser</Table.Th>
                  <Table.Th visibleFrom="xs">Address</Table.Th>
                  <Table.Th>Last used</Table.Th>
                  <Table.Th>
                    <VisuallyHidden>Actions</VisuallyHidden>
                  </Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {items.map((session) => (
                  <Table.Tr key={session.id}>
                    <Table.Td className="any-break">
                      <span title={session.user_agent}>{browserName(session.user_agent)}</span>
                      {session.signed_in_by === "oidc" && (
                        <Text size="xs" c="dimmed">
                          Single sign-on
                        </Text>
                      )}
                    </Table.Td>
                    <Table.Td visibleFrom="xs">{session.address}</Table.Td>
                    <Table.Td>
                      <Time at={session.seen_at} />
                    </Table.Td>
                    <Table.Td ta="right">
                      {session.is_this ? (
                        <Text size="sm" c="dimmed">
                          This session
                        </Text>
                      ) : (
                        <Button
                          size="xs"
                          variant="default"
                          onClick={() => ending.mutate({ params: { sessionId: session.id } })}
                        >
                          End
                        </Button>
                      )}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </Paper>
        )}
      </Reading>
    </section>
  );
}
