import { Button, Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { lazy, Suspense, useMemo, useState, type ReactNode } from "react";
import { checkConfig, readConfigSchema } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { useDraft } from "../api/use-draft.ts";
import type { AnswerOf } from "../api/request.ts";
import type { EditorProblem } from "./code-editor.tsx";
import { FailureNote } from "./failure-note.tsx";
import { Loading } from "./loading.tsx";
import styles from "./document-editor.module.css";
import { PublishDialog } from "./publish-dialog.tsx";

const CodeEditor = lazy(async () => ({ default: (await import("./code-editor.tsx")).CodeEditor }));

type Checked = AnswerOf<typeof checkConfig>;

const PAUSE_MS = 400;
const NONE: Checked["problems"] = [];

/** The document that the page edits. For a new one, account and id are null and the version is 0. */
interface DocumentName {
  readonly kind: "strategy" | "blueprint";
  readonly account: string | null;
  readonly id: string | null;
  /** The current one. */
  readonly version: number;
}

/** Not published yet. */
interface DocumentDraft {
  readonly text: string;
  /** The version that the text is based on, and its text; version 0: the template of a new document. */
  readonly base: { readonly version: number; readonly text: string };
}

interface EditorProps {
  readonly label: string;
  readonly of: DocumentName;
  readonly initial: string;
  /** The id of the node whose line is shown first. */
  readonly startAt?: string | null;
  readonly onPublished: (change: {
    readonly kind: string;
    readonly account: string;
    readonly id: string;
  }) => void;
  /** The preview of a document without problems. */
  readonly children: (checked: Checked["documents"][number], text: string) => ReactNode;
}

/** Edits a document: shows its problems with their places and a preview, and publishes it. */
export function DocumentEditor(props: EditorProps) {
  const { text, base, isDraft, setText, discard, discarded } = useDocumentDraft(props.of, props.initial);
  const [typed] = useDebouncedValue(text, PAUSE_MS);
  const [goTo, setGoTo] = useState<EditorProblem | null>(() => placeOf(text, props.startAt ?? null));
  const [isAsking, setIsAsking] = useState(false);
  const schema = useRead(readConfigSchema, {});
  const checked = useRead(checkConfig, { body: { documents: [{ file: "document.yaml", text: typed }] } });
  const problems = checked.data?.problems ?? NONE;
  const warnings = checked.data?.warnings ?? NONE;
  const marks = useMemo(
    () => [...problems, ...warnings.map((warning) => ({ ...warning, isWarning: true }))],
    [problems, warnings],
  );
  const isChecked = checked.data !== undefined && typed === text;
  return (
    <Stack gap="md">
      {isDraft && <DraftNote base={base.version} version={props.of.version} onDiscard={discard} />}
      {/* One can see what one types. */}
      <div className={styles["beside"]}>
        <Stack gap="md">
          <Suspense fallback={<Loading what="Loading the editor" />}>
            <CodeEditor
              // Restarts with another text: that of a newer version or with other comments, or after the draft was discarded.
              key={`${base.version} ${discarded} ${base.text}`}
              label={props.label}
              initial={text}
              problems={marks}
              schema={schema.data ?? null}
              onChange={setText}
              goTo={goTo}
            />
          </Suspense>
          {checked.error && <FailureNote error={checked.error} />}
          <PublishBar
            counts={isChecked ? { problems: problems.length, warnings: warnings.length } : null}
            isDraft={isDraft}
            onPublish={() => setIsAsking(true)}
          />
          {problems.length > 0 && (
            <Problems label="Problems" problems={problems} onGo={(problem) => setGoTo({ ...problem })} />
          )}
          {warnings.length > 0 && (
            <Problems label="Warnings" problems={warnings} onGo={(problem) => setGoTo({ ...problem })} />
          )}
        </Stack>
        <div className={styles["preview"]}>
          {checked.data?.documents.map((document) => (
            <div key={`${document.kind} ${document.id}`}>{props.children(document, typed)}</div>
          ))}
        </div>
      </div>
      <PublishDialog
        text={isAsking ? text : null}
        baseVersion={isNamed(checked.data, props.of) ? base.version : 0}
        onClose={() => setIsAsking(false)}
        onTaken={discard}
        onPublished={(changes) => {
          setIsAsking(false);
          const [change] = changes;
          if (change) props.onPublished(change);
        }}
      />
    </Stack>
  );
}

interface PublishBarProps {
  /** null: the text is being checked. */
  readonly counts: { readonly problems: number; readonly warnings: number } | null;
  readonly isDraft: boolean;
  readonly onPublish: () => void;
}

/** Says what the check has found, and publishes a draft without problems. */
const PublishBar = ({ counts, isDraft, onPublish }: PublishBarProps) => (
  <Group justify="space-between" gap="sm">
    <Text size="sm" component="output">
      <span>{counts === null ? "Checking…" : describe(counts.problems, counts.warnings)}</span>
      {counts?.problems === 0 && !isDraft && ", and the same as the published version"}
      {counts !== null && counts.problems > 0 && ". Correct them to publish"}
    </Text>
    <Button disabled={counts?.problems !== 0 || !isDraft} onClick={onPublish}>
      Publish…
    </Button>
  </Group>
);

/** The line of a node's id in a document; null: it has none. */
function placeOf(text: string, node: string | null): EditorProblem | null {
  if (node === null) return null;
  const line = text.split("\n").findIndex((each) => /^[\s{-]*id:\s*["']?([\w-]+)/.exec(each)?.[1] === node);
  return line === -1 ? null : { line: line + 1, column: 1, message: "" };
}

function useDocumentDraft({ kind, account, id, version }: DocumentName, published: string) {
  const [draft, setDraft] = useDraft<DocumentDraft>("document", kind, account ?? "", id ?? "");
  const [discarded, setDiscarded] = useState(0);
  const base = draft?.base ?? { version, text: published };
  return {
    text: draft?.text ?? published,
    base,
    isDraft: draft !== undefined,
    setText: (next: string): void => setDraft(next === base.text ? undefined : { text: next, base }),
    /** The number of restarts. */
    discarded,
    discard: (): void => {
      setDraft(undefined);
      setDiscarded(discarded + 1);
    },
  };
}

/** Whether the text is still the page's document: with another name it is a new one. */
const isNamed = (checked: Checked | undefined, { kind, account, id }: DocumentName): boolean =>
  checked?.documents.some((each) => each.kind === kind && each.account === account && each.id === id) ===
  true;

function DraftNote(props: {
  readonly base: number;
  readonly version: number;
  readonly onDiscard: () => void;
}) {
  const isBehind = props.base !== props.version;
  return (
    <Group justify="space-between" gap="sm">
      <Text size="sm" {...(isBehind ? { fw: 600 } : { c: "dimmed" })}>
        {isBehind
          ? `Unpublished changes to version ${props.base}. Version ${props.version} has been published since: “Publish…” shows both sides.`
          : "Unpublished changes. They are kept in this tab."}
      </Text>
      <Button variant="subtle" size="compact-sm" onClick={props.onDiscard}>
        Discard changes
      </Button>
    </Group>
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
