import { Stack, Text } from "@mantine/core";
import { addressOf } from "../api/request.ts";
import { readPicture } from "../api/operations.ts";
import type { Run, RunStep } from "../parts/answers.ts";
import { Facts } from "../parts/facts.tsx";
import { Note } from "../parts/note.tsx";
import styles from "./run-node-panel.module.css";

type Evidence = RunStep["evidence"][number];

const TITLES: Readonly<Record<Evidence["reason"], string>> = {
  failed: "The page when the step failed",
  done: "The page when the steps were done",
  screenshot: "The page at a screenshot",
};

/** What the pages of a step's browser showed. */
export function PageEvidence({ run, step }: { readonly run: Run; readonly step: RunStep }) {
  return (
    <Stack gap="md">
      {step.evidence.map((evidence, index) => (
        <Note key={index} tone="quiet" title={TITLES[evidence.reason]}>
          <Facts
            of={[
              ["Step", evidence.step],
              ["Page", evidence.url],
              [
                "Refused requests",
                evidence.refused.length === 0
                  ? null
                  : evidence.refused.map(({ origin, count }) => `${origin} (${count})`).join(", "),
              ],
            ]}
          />
          {evidence.has_picture && (
            <img
              className={styles["picture"]}
              src={addressOf(readPicture, {
                params: { runId: run.id, node: step.node, index: String(index) },
              })}
              alt={`The page at ${evidence.step}. Fields and secrets are covered; the outline below has its texts.`}
            />
          )}
          <Lines title="Outline" of={evidence.outline === "" ? [] : evidence.outline.split("\n")} />
          <Lines title="Errors in the console" of={evidence.console} />
        </Note>
      ))}
    </Stack>
  );
}

function Lines({ title, of }: { readonly title: string; readonly of: readonly string[] }) {
  if (of.length === 0) return null;
  return (
    <>
      <Text size="sm" fw={600} mt="sm">
        {title}
      </Text>
      <section className={styles["answer"]} tabIndex={0} aria-label={title}>
        {of.join("\n")}
      </section>
    </>
  );
}
