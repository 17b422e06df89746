import { Kbd, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { useLocation } from "wouter";
import { ApiFailure, explainFailure } from "../api/failure.ts";
import { listRuns } from "../api/operations.ts";
import { call } from "../api/request.ts";
import { SEARCH_ID } from "./shortcuts.ts";

const ID = /^(run_\w+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/i;

/** An id or key opens the run; anything else is a prefix of the run's name. */
export function RunSearch() {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [, navigate] = useLocation();
  const go = async (wanted: string): Promise<void> => {
    if (!ID.test(wanted)) return navigate(`/runs?run_name=${encodeURIComponent(wanted)}`);
    const found = (await call(listRuns, { query: { id: wanted } })).items[0];
    if (!found) throw new ApiFailure(404, "No run has this ID.");
    navigate(`/runs/${found.id}`);
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const wanted = text.trim();
    if (wanted === "") return;
    setProblem(null);
    go(wanted).then(
      () => setText(""),
      (error: unknown) => setProblem(explainFailure(error).message),
    );
  };
  return (
    <search>
      <form onSubmit={submit}>
        <TextInput
          id={SEARCH_ID}
          aria-label="Find a run by ID or name"
          placeholder="Run ID or name"
          rightSection={text === "" ? <Kbd size="xs">/</Kbd> : null}
          rightSectionPointerEvents="none"
          value={text}
          error={problem}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
      </form>
    </search>
  );
}
