import { Button, Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { lazy, Suspense, useMemo, useState, type ReactNode } from "react";
import { checkConfig, readConfigSchema } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import type { EditorProblem } from "./code-editor.tsx";
import { FailureNote } from "./failure-note.tsx";
import { Loading } from "./loading.tsx";
import { PublishDialog } from "./publish-dialog.tsx";

const CodeEditor = lazy(async () => ({ default: (await import("./code-editor.tsx")).CodeEditor }));

type Checked = AnswerOf<typeof checkConfig>;

const PAUSE_MS = 400;
const NONE: Checked["problems"] = [];

/** A document while it is typed: its problems with their places, what it makes, and the way to publish it. */
export function DocumentEditor(props: {
  readonly label: string;
  readonly initial: string;
  readonly onPublished: (change: {
    readonly kind: string;
    readonly account: string;
    readonly id: string;
  }) => void;
  /** What a document without a problem makes. */
  readonly children: (checked: Checked["documents"][number]) => ReactNode;
}) {
  const [text, setText] = useState(props.initial);
  const [typed] = useDebouncedValue(text, PAUSE_MS);
  const [goTo, setGoTo] = useState<EditorProblem | null>(null);
  const [isAsking, setIsAsking] = useState(false);
  const schema = useRead(readConfigSchema, {});
  const file = "document.yaml";
  const checked = useRead(checkConfig, { body: { documents: [{ file, text: typed }] } });
  const problems = checked.data?.problems ?? NONE;
  const warnings = checked.data?.warnings ?? NONE;
  const marks = useMemo(
    () => [...problems, ...warnings.map((warning) => ({ ...warning, isWarning: true }))],
    [problems, warnings],
  );
  const isChecked = checked.data !== undefined && typed === text;
  return (
    <Stack gap="md">
      <Suspense fallback={<Loading what="Loading the editor" />}>
        <CodeEditor
          label={props.label}
          initial={props.initial}
          problems={marks}
          schema={schema.data ?? null}
          onChange={setText}
          goTo={goTo}
        />
      </Suspense>
      {checked.error && <FailureNote error={checked.error} />}
      <Group justify="space-between" gap="sm">
        <Text size="sm" component="output">
          {isChecked ? describe(problems.length, warnings.length) : "Checking…"}
        </Text>
        <Button
          disabled={!isChecked || problems.length > 0 || text === props.initial}
          onClick={() => setIsAsking(true)}
        >
          Publish…
        </Button>
      </Group>
      {problems.length > 0 && (
        <Problems label="Problems" problems={problems} onGo={(problem) => setGoTo({ ...problem })} />
      )}
      {warnings.length > 0 && (
        <Problems label="Warnings" problems={warnings} onGo={(problem) => setGoTo({ ...problem })} />
      )}
      {checked.data?.documents.map((document) => (
        <div key={`${document.kind} ${document.id}`}>{props.children(document)}</div>
      ))}
      <PublishDialog
        text={isAsking ? text : null}
        onClose={() => setIsAsking(false)}
        onPublished={(changes) => {
          setIsAsking(false);
          const [change] = changes;
          if (change) props.onPublished(change);
        }}
      />
    </Stack>
  );
}

function describe(problems: number, warnings: number): string {
  if (problems > 0) return problems === 1 ? "1 problem" : `${problems} problems`;
  if (warnings === 0) return "Valid";
  return `Valid, ${warnings === 1 ? "1 warning" : `${warnings} warnings`}`;
}

function Problems(props: {
  readonly label: string;
  readonly problems: Checked["problems"];
  readonly onGo: (problem: EditorProblem) => void;
}) {
  return (
    <ul className="plain-list" aria-label={props.label}>
      {props.problems.map((problem) => (
        <li key={`${problem.line}:${problem.column} ${problem.message}`}>
          <Button variant="subtle" size="compact-sm" className="problem" onClick={() => props.onGo(problem)}>
            <span>
              Line {problem.line}: {problem.path !== "" && <code>{problem.path}</code>} {problem.message}
            </span>
          </Button>
        </li>
      ))}
    </ul>
  );
}
