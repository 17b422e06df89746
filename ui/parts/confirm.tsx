import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { FailureNote } from "./failure-note.tsx";

/** A confirmation dialog that explains the consequences and stays open until the operation is done. Red if it can't be undone. */
export function Confirm(props: {
  readonly isOpen: boolean;
  readonly title: string;
  readonly children: ReactNode;
  readonly action: string;
  /** The text of the button that closes it; default: "Cancel". */
  readonly dismiss?: string;
  readonly isBusy: boolean;
  /** Whether the action is currently impossible; the text above says why. */
  readonly isBlocked?: boolean;
  /** Whether the action is not destructive. */
  readonly isHarmless?: boolean;
  readonly failure: Error | null;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}) {
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title={props.title}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack gap="md">
        <Text size="sm" component="div">
          {props.children}
        </Text>
        {props.failure && <FailureNote error={props.failure} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={props.onClose} data-autofocus>
            {props.dismiss ?? "Cancel"}
          </Button>
          {props.isBlocked !== true && (
            <Button
              {...(props.isHarmless ? {} : { color: "red.9" })}
              loading={props.isBusy}
              onClick={props.onConfirm}
            >
              {props.action}
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  );
}
