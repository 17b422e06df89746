import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { changeOperatorAccounts, listOperators } from "../api/operations.ts";
import { keyOf, useOperation } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AccountChoice } from "../parts/account-choice.tsx";
import { FailureNote } from "../parts/failure-note.tsx";

type Operator = AnswerOf<typeof listOperators>["items"][number];

/** Opens the dialog in which an operator is limited to accounts. */
export function LimitButton({ of: { id, email, accounts } }: { readonly of: Operator }) {
  const [wanted, setWanted] = useState<readonly string[] | null>(null);
  const limiting = useOperation(changeOperatorAccounts, {
    changes: [keyOf(listOperators)],
    onDone: () => setWanted(null),
  });
  return (
    <>
      <Button
        size="xs"
        variant="default"
        aria-label={`Accounts of ${email}`}
        onClick={() => {
          limiting.reset();
          setWanted(accounts ?? []);
        }}
      >
        Accounts
      </Button>
      <Modal
        opened={wanted !== null}
        onClose={() => setWanted(null)}
        title={`Accounts of ${email}`}
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <Stack gap="md">
          {limiting.failure && <FailureNote error={limiting.failure} />}
          <AccountChoice value={wanted ?? []} onChange={setWanted} />
          <Text size="sm">
            Others are then as if they did not exist, and the pages of operators, tokens and the system are
            closed to them. Their sessions end.
          </Text>
          <Group justify="flex-end">
            <Button
              loading={limiting.isPending}
              onClick={() =>
                limiting.mutate({
                  params: { operatorId: id },
                  body: { accounts: wanted === null || wanted.length === 0 ? null : [...wanted] },
                })
              }
            >
              Change accounts
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}
