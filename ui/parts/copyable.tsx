import { Button, Code } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";

/** An id that people paste elsewhere. */
export function Copyable({ text, name }: { readonly text: string; readonly name: string }) {
  const clipboard = useClipboard({ timeout: 1_500 });
  return (
    <span>
      <Code>{text}</Code>{" "}
      <Button
        size="compact-xs"
        variant="subtle"
        color="gray"
        aria-label={`${clipboard.copied ? "Copied" : "Copy"} ${name}`}
        onClick={() => clipboard.copy(text)}
      >
        {clipboard.copied ? "Copied" : "Copy"}
      </Button>
    </span>
  );
}
