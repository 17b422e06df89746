import { Button, Code } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";

/** Shown on one line with its button. */
const SHORT = 24;

/** An id that people paste elsewhere. */
export function Copyable(props: {
  readonly text: string;
  readonly name: string;
  /** What is shown instead of a long text. */
  readonly shown?: string;
}) {
  const { text, name, shown = text } = props;
  const clipboard = useClipboard({ timeout: 1_500 });
  return (
    <span className={shown.length < SHORT ? "no-wrap" : ""}>
      <Code title={text}>{shown}</Code>{" "}
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
