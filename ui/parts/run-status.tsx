import { Loader } from "@mantine/core";
import type { RunStatus } from "#domain/run.ts";
import styles from "./status.module.css";

/** As the API says it, and as people do. The keys are all there are, or it does not compile. */
export const STATUS_NAMES: Readonly<Record<RunStatus, string>> = {
  queued: "Queued",
  running: "Running",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
};

const STEPS: Readonly<Record<string, string>> = {
  authenticating: "Logging in",
  awaiting_review: "Waiting for review",
  awaiting_input: "Waiting for input",
};

/** Where a run stands: said in words, and in a colour besides. */
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
      {STEPS[step] ?? STATUS_NAMES[status]}
    </span>
  );
}

/** The same for anything else that has a few states. */
export function Mark({ tone, children }: { readonly tone: string; readonly children: string }) {
  return (
    <span className={styles["mark"]} data-tone={tone}>
      <span className={styles["dot"]} aria-hidden="true" />
      {children}
    </span>
  );
}
