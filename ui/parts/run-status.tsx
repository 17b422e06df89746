import { Loader } from "@mantine/core";
import type { RunStatus } from "#domain/run.ts";
import { runOutcomeName, runStateName } from "#domain/labels/states.ts";
import type { ListedRun } from "./answers.ts";
import styles from "./status.module.css";

/** A run's state, as a label and a colour. */
export function RunStatusMark({ status, step }: { readonly status: RunStatus; readonly step: string }) {
  const tone = step === "awaiting_review" ? "waiting" : status;
  const isMoving = status === "running" && tone !== "waiting";
  return (
    <span className={styles["mark"]} data-tone={tone}>
      {isMoving ? (
        <Loader size={10} aria-hidden="true" />
      ) : (
        <span className={styles["dot"]} aria-hidden="true" />
      )}
      {runStateName(status, step)}
    </span>
  );
}

/** What became of a run: why it failed, or how many of its records have errors. */
export function RunOutcomeMark({ of: run }: { readonly of: ListedRun }) {
  const isWrong = run.failure === null && (run.records_with_errors ?? 0) > 0;
  if (run.failure === null && !isWrong) return <RunStatusMark status={run.status} step={run.progress_step} />;
  return <Mark tone={isWrong ? "waiting" : "failed"}>{runOutcomeName(run)}</Mark>;
}

/** The state of any other object. */
export function Mark({ tone, children }: { readonly tone: string; readonly children: string }) {
  return (
    <span className={styles["mark"]} data-tone={tone}>
      <span className={styles["dot"]} aria-hidden="true" />
      {children}
    </span>
  );
}
