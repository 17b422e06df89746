import { autocompletion } from "@codemirror/autocomplete";
import { yaml } from "@codemirror/lang-yaml";
import { setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useComputedColorScheme } from "@mantine/core";
import { basicSetup } from "codemirror";
import { useEffect, useRef } from "react";
import { completeDocument } from "./complete-document.ts";

export interface EditorProblem {
  /** From 1. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
  /** The document can be published anyway. */
  readonly isWarning?: boolean;
}

export interface EditorProps {
  readonly label: string;
  readonly initial: string;
  readonly problems: readonly EditorProblem[];
  /** The schema of all documents; null: no completion. */
  readonly schema: object | null;
  readonly onChange: (text: string) => void;
  /** The problem to scroll to; a new object each time. */
  readonly goTo: EditorProblem | null;
}

const nonce = document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";

const look = EditorView.theme({
  "&": { fontSize: "13px", borderRadius: "var(--mantine-radius-md)", maxHeight: "65vh" },
  ".cm-scroller": { fontFamily: "var(--mantine-font-family-monospace)", minHeight: "22rem" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--mantine-color-dimmed)", border: "none" },
  ".cm-content": { caretColor: "var(--mantine-color-text)" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  // The package's wavy lines are images in data: URIs, which the page's policy does not allow.
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--tone-bad)" },
  ".cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--tone-waiting)",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--mantine-color-body)",
    color: "var(--mantine-color-text)",
    border: "1px solid var(--mantine-color-default-border)",
  },
});

/** A YAML editor with completion, loaded on demand. Escape, then Tab leaves it by keyboard. */
export function CodeEditor(props: EditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  useEffect(() => {
    latest.current = props;
  });
  const scheme = useComputedColorScheme("light");
  const completion = useRef(new Compartment());
  const shade = useRef(new Compartment());
  useEffect(() => {
    if (!place.current) return undefined;
    const opened = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: latest.current.initial,
        extensions: [
          EditorView.cspNonce.of(nonce),
          basicSetup,
          EditorView.lineWrapping,
          yaml(),
          completion.current.of([]),
          shade.current.of([]),
          look,
          // With the index it is known to be focusable, also where its lines are cut off.
          EditorView.contentAttributes.of({ "aria-label": latest.current.label, tabindex: "0" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = opened;
    return () => opened.destroy();
  }, []);
  useEffect(() => {
    const sources = props.schema === null ? [] : [completeDocument(props.schema)];
    view.current?.dispatch({
      effects: completion.current.reconfigure(autocompletion({ override: sources })),
    });
  }, [props.schema]);
  useEffect(() => {
    view.current?.dispatch({
      effects: shade.current.reconfigure(EditorView.theme({}, { dark: scheme === "dark" })),
    });
  }, [scheme]);
  useEffect(() => {
    const { current } = view;
    if (!current) return;
    const marks = props.problems.map((problem) => {
      const from = positionOf(current.state, problem);
      return {
        from,
        to: current.state.doc.lineAt(from).to,
        severity: problem.isWarning === true ? ("warning" as const) : ("error" as const),
        message: problem.message,
      };
    });
    current.dispatch(setDiagnostics(current.state, marks));
  }, [props.problems]);
  useEffect(() => {
    const { current } = view;
    if (!current || props.goTo === null) return;
    current.dispatch({ selection: { anchor: positionOf(current.state, props.goTo) }, scrollIntoView: true });
    current.focus();
  }, [props.goTo]);
  return <div ref={place} className="code-editor" />;
}

function positionOf(state: EditorState, { line, column }: EditorProblem): number {
  const { from, to } = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
  return Math.min(from + Math.max(column - 1, 0), to);
}
