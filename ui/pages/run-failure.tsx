import { Anchor, Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { runOutcomeName, withoutLockRemedy, withoutRejections } from "#domain/labels/states.ts";
import { useSignedIn } from "../api/queries.ts";
import type { Run } from "../parts/answers.ts";
import { Note } from "../parts/note.tsx";
import { Time } from "../parts/time.tsx";
import { CredentialActions, WaysOut } from "./credential-parts.tsx";
import { RunAgainButton } from "./run-again.tsx";
import { RunComparison } from "./run-comparison.tsx";
import { useSelectedNode } from "./run-steps.tsx";

/** What a failure means, and what helps: the recommended step is another run, with another input, or a look at the Blueprint. */
const VERDICTS: Readonly<
  Record<string, readonly [recommended: "run" | "input" | "blueprint", verdict: string]>
> = {
  target: ["run", "The target did not answer as expected. Run it again when the target works."],
  data: [
    "input",
    "The input does not have the form that the Blueprint expects. Correct it and run again; or correct the Blueprint, if its source now looks like this.",
  ],
  timeout: ["run", "It took longer than its timeout. Run it again, or allow it more time."],
  review_timeout: ["run", "Nobody decided its review in time. Run it again, and decide."],
  interrupted: ["run", "Its workers were lost again and again. Run it again."],
  expired: ["run", "No worker began it in time. Run it again."],
  browser_missing: ["run", "No worker has a browser. Run it again when one does."],
  browser_crashed: ["run", "The browser crashed. Run it again."],
  internal: ["run", "Latchkey itself failed. Run it again; the log says more."],
  page_changed: [
    "blueprint",
    "The target's page is not the one that the document describes. Correct the step.",
  ],
};

/** Why a run failed: the sentence, the step and the request that did it, and beside them what fixes it. */
export function RunFailure({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  const [isCompared, setIsCompared] = useState(false);
  const step = run.steps.find(({ status }) => status === "failed");
  const [recommended, verdict] = VERDICTS[run.failure ?? ""] ?? ["blueprint", null];
  // It would fail in the same way.
  const isLocked =
    run.failure === "login" && run.credentials.some(({ locked_until: until }) => until !== null);
  const isPassing = recommended === "run";
  const mayCorrect = recommended === "input" && run.purged_at === null && mayTry(run, may);
  return (
    <Note tone="bad" title={run.failure === null ? "Failed" : runOutcomeName(run)}>
      {verdict !== null && (
        <Text size="sm" fw={600} className="any-break">
          {verdict}
        </Text>
      )}
      {run.failure === "login" && <LoginVerdict run={run} />}
      <Text size="sm" className="any-break">
        {run.failure_detail === null ? "See the failed step below." : detailOf(run)}
      </Text>
      {run.failure === "login" && <LoginWaysOut run={run} />}
      {run.failed_step !== null && <DocumentPlace run={run} place={run.failed_step} />}
      <FailedStep run={run} node={run.failed_node ?? step?.node ?? null} />
      {/* The sentence above says it already for a login. */}
      {step?.answer && run.failure !== "login" && (
        <Text size="sm" className="any-break">
          Response: {step.answer.status} from {step.answer.address}
        </Text>
      )}
      <Group gap="xs" mt="sm">
        {run.failure === "login" && <LoginRemedies run={run} />}
        {mayCorrect && (
          <BlueprintButton run={run} at={{ tab: "try", from: run.id }}>
            Correct the input and run again
          </BlueprintButton>
        )}
        {run.blueprint !== null && may("run.trigger") && (
          <RunAgainButton
            run={run}
            size="xs"
            obstacle={isLocked ? "Unlock the login first" : null}
            isPrimary={isPassing}
            label={recommended === "input" ? "Run again as it was" : "Run again"}
          />
        )}
        {run.blueprint !== null && run.failure !== "login" && may("config.read") && (
          <BlueprintButton
            run={run}
            at={{ tab: "document", ...(run.failed_node === null ? {} : { node: run.failed_node }) }}
            variant={isPassing || mayCorrect ? "default" : "filled"}
          >
            {run.failed_node === null ? "Open the Blueprint" : "Open the Blueprint at this step"}
          </BlueprintButton>
        )}
        {run.blueprint !== null && (
          <Button
            variant="default"
            size="xs"
            aria-expanded={isCompared}
            onClick={() => setIsCompared(!isCompared)}
          >
            Compare with the last good run
          </Button>
        )}
      </Group>
      {isCompared && <RunComparison run={run} />}
    </Note>
  );
}

/** What happened; that a login is rejected in a row, and locked, the verdict says. */
function detailOf({ failure_detail: detail, credentials }: Run): string {
  const text = withoutLockRemedy(detail ?? "");
  return credentials.some(({ login_rejections: count }) => count > 0) ? withoutRejections(text) : text;
}

interface BlueprintButtonProps {
  readonly run: Run;
  /** What of the page is shown, as its query says. */
  readonly at: Readonly<Record<string, string>>;
  readonly variant?: "default" | "filled";
  readonly children: string;
}

/** A link to the run's Blueprint. */
const BlueprintButton = ({ run, at, variant = "filled", children }: BlueprintButtonProps) => (
  <Button
    component={Link}
    href={`/blueprints/${run.account}/${run.blueprint}?${new URLSearchParams(at)}`}
    variant={variant}
    size="xs"
  >
    {children}
  </Button>
);

/** Whether this operator may start a run of its Blueprint with its input, by hand. */
const mayTry = (
  run: Run,
  may: (permission: "run.trigger" | "run.results" | "config.read") => boolean,
): boolean => run.blueprint !== null && may("run.trigger") && may("run.results") && may("config.read");

/** Where the browser's step stands, in the version that the run had. */
function DocumentPlace({
  run,
  place,
}: {
  readonly run: Run;
  readonly place: NonNullable<Run["failed_step"]>;
}) {
  const { document, name, version, line, column } = place;
  const path = document === "strategy" ? "strategies" : "blueprints";
  return (
    <Text size="sm" className="any-break">
      In{" "}
      <Anchor component={Link} href={`/${path}/${run.account}/${name}?tab=document`} size="sm">
        {name}
      </Anchor>
      , version {version}: line {line}, column {column}
    </Text>
  );
}

function FailedStep({ run, node }: { readonly run: Run; readonly node: string | null }) {
  const { selected, select } = useSelectedNode(run);
  if (node === null || (selected === node && run.failure_detail?.includes(node) === true)) return null;
  return (
    <Text size="sm" className="any-break">
      Step:{" "}
      {selected === node ? (
        node
      ) : (
        <Anchor component="button" type="button" size="sm" onClick={() => select(node)}>
          {node}
        </Anchor>
      )}
    </Text>
  );
}

/** What it means for each credential. */
function LoginVerdict({ run }: { readonly run: Run }) {
  return run.credentials
    .filter(({ login_rejections: count }) => count > 0)
    .map(({ slot, name, credential_id: id, login_rejections: count, locked_until: until }) => (
      <Text key={slot} size="sm" fw={600} className="any-break">
        The target rejected the login of {name ?? id}, {count === 1 ? "once" : `${count} times in a row`}
        {until === null ? (
          "."
        ) : (
          <>
            : it is locked, and unlocks <Time at={until} />.
          </>
        )}
      </Text>
    ));
}

/** What to do about each login that is rejected. */
const LoginWaysOut = ({ run }: { readonly run: Run }) =>
  run.credentials
    .filter(({ login_rejections: count, is_deleted: isDeleted }) => count > 0 && !isDeleted)
    .map(({ credential_id: id, ...each }) => (
      <WaysOut key={each.slot} of={{ ...each, id }} isTest={run.blueprint === null} />
    ));

/** To the strategy, and a test of each login that was not rejected since. */
function LoginRemedies({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  return run.credentials
    .filter((each) => !each.is_deleted)
    .map(({ slot, name, credential_id: id, login_rejections: count, locked_until: until, strategy }) => (
      <Group key={slot} gap="xs">
        {count === 0 && <CredentialActions of={{ id, name, login_rejections: count, locked_until: until }} />}
        {may("config.read") && (
          <Button
            component={Link}
            href={`/strategies/${run.account}/${strategy}`}
            variant="default"
            size="xs"
          >
            Open the strategy
          </Button>
        )}
      </Group>
    ));
}
