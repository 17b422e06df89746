import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { changeOperatorAccounts, listOperators } from "../api/operations.ts";
import { keyOf, useOperation } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AccountChoice } from "../parts/account-choice.tsx";
import { FailureNote } from "../parts/failure-note.tsx";

type Operator = AnswerOf<typeof listOperators>["items"][number];

interface LimitProps {
  readonly of: Operator;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

/** The dialog in which an operator is limited to accounts. Each time that it opens it begins with those of now. */
export function LimitDialog({ of, isOpen, onClose }: LimitProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title={`Accounts of ${of.email}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <LimitForm of={of} onClose={onClose} />
    </Modal>
  );
}

function LimitForm({ of: { id, accounts }, onClose }: Omit<LimitProps, "isOpen">) {
  const [wanted, setWanted] = useState<readonly string[]>(accounts ?? []);
  const limiting = useOperation(changeOperatorAccounts, {
    changes: [keyOf(listOperators)],
    onDone: onClose,
  });
  return (
    <Stack gap="md">
      {limiting.failure && <FailureNote error={limiting.failure} />}
      <AccountChoice value={wanted} onChange={setWanted} />
      <Text size="sm">
        Others are then as if they did not exist, and the pages of operators, tokens and the system are closed
        to them. Their sessions end.
      </Text>
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          loading={limiting.isPending}
          onClick={() =>
            limiting.mutate({
              params: { operatorId: id },
              body: { accounts: wanted.length === 0 ? null : [...wanted] },
            })
          }
        >
          Change accounts
        </Button>
      </Group>
    </Stack>
  );
}
