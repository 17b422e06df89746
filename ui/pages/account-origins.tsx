import { Textarea } from "@mantine/core";
import { useState } from "react";
import { readOrigins } from "./origin-lines.ts";

/** Checked before anything is sent, and so before a second factor is asked for. */
export function useOrigins(given: readonly string[]) {
  const [text, setText] = useState(given.join("\n"));
  const [problem, setProblem] = useState<string | null>(null);
  /** Null: a line is no origin, and `problem` says which. */
  const read = (): readonly string[] | null => {
    const found = readOrigins(text);
    setProblem("problem" in found ? found.problem : null);
    return "problem" in found ? null : found.origins;
  };
  return { text, setText, problem, read };
}

/** Origins, one per line. */
export const OriginLines = (props: {
  readonly label: string;
  readonly of: ReturnType<typeof useOrigins>;
  /** What the service has said about them. */
  readonly problem: string | undefined;
}) => (
  <Textarea
    label={props.label}
    description="One per line, for example https://app.example.com"
    autosize
    minRows={2}
    value={props.of.text}
    error={props.of.problem ?? props.problem}
    onChange={(event) => props.of.setText(event.currentTarget.value)}
  />
);
