import { Button, Code, Group, Modal, Stack, Text } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";

/** A secret that is shown only once: it closes only when the user confirms that it is saved. */
export function ShownOnce(props: {
  readonly title: string;
  readonly text: string | null;
  readonly about: string;
  readonly onKept: () => void;
}) {
  const clipboard = useClipboard({ timeout: 1_500 });
  const { text } = props;
  return (
    <Modal
      opened={text !== null}
      onClose={props.onKept}
      title={props.title}
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
    >
      <Stack gap="md">
        <Text size="sm">{props.about}</Text>
        <Code block className="any-break">
          {text}
        </Code>
        <Group justify="flex-end">
          <Button variant="default" onClick={() => clipboard.copy(text ?? "")}>
            {clipboard.copied ? "Copied" : "Copy"}
          </Button>
          <Button onClick={props.onKept}>I've saved it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
