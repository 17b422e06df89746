import { Anchor, Button, Group, Text } from "@mantine/core";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { failureName, withoutLockRemedy } from "#domain/labels/states.ts";
import { listCredentials, readRun, unlockCredential } from "../api/operations.ts";
import { keyOf, useSignedIn } from "../api/queries.ts";
import type { Run } from "../parts/answers.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { Note } from "../parts/note.tsx";
import { TestLoginButton } from "../parts/test-login-button.tsx";
import { Time } from "../parts/time.tsx";
import { RunAgainButton } from "./run-again.tsx";
import { RunComparison } from "./run-comparison.tsx";
import { useSelectedNode } from "./run-steps.tsx";

/** What a failure means, and what helps: the recommended step is another run, or a look at the Blueprint. */
const VERDICTS: Readonly<Record<string, readonly [recommended: "run" | "blueprint", verdict: string]>> = {
  target: ["run", "The target did not answer as expected. Run it again when the target works."],
  data: [
    "blueprint",
    "The data does not have the form that the Blueprint expects. Correct one or the other.",
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
  const isPassing = recommended === "run";
  return (
    <Note tone="bad" title={run.failure === null ? "Failed" : failureName(run.failure)}>
      {run.failure === "login" && <LoginVerdict run={run} />}
      {verdict !== null && (
        <Text size="sm" fw={600} className="any-break">
          {verdict}
        </Text>
      )}
      <Text size="sm" className="any-break">
        {run.failure_detail === null ? "See the failed step below." : withoutLockRemedy(run.failure_detail)}
      </Text>
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
        {run.blueprint !== null && may("run.trigger") && (
          <RunAgainButton run={run} size="xs" isPrimary={isPassing} />
        )}
        {run.blueprint !== null && run.failure !== "login" && may("config.read") && (
          <Button
            component={Link}
            href={`/blueprints/${run.account}/${run.blueprint}?${new URLSearchParams({
              tab: "document",
              ...(run.failed_node === null ? {} : { node: run.failed_node }),
            })}`}
            variant={isPassing ? "default" : "filled"}
            size="xs"
          >
            {run.failed_node === null ? "Open the Blueprint" : "Open the Blueprint at this step"}
          </Button>
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

/** What it means for the credential, in one sentence each. */
function LoginVerdict({ run }: { readonly run: Run }) {
  return run.credentials
    .filter(({ login_rejections: count }) => count > 0)
    .map(({ slot, name, credential_id: id, login_rejections: count, locked_until: until }) => (
      <div key={slot}>
        <Text size="sm" fw={600} className="any-break">
          The target rejected the login of {name ?? id}, {count === 1 ? "once" : `${count} times in a row`}
          {until === null ? (
            "."
          ) : (
            <>
              : it is locked, and unlocks <Time at={until} />.
            </>
          )}
        </Text>
        <Text size="sm" className="any-break">
          If the password is wrong, the account&apos;s backend creates a new link to the form for its user. If
          it is right, {until === null ? "test the login" : "unlock the credential, then test the login"}.
        </Text>
      </div>
    ));
}

/** Unlock, and test the login, of each credential that is still there. */
function LoginRemedies({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  const [, go] = useLocation();
  return run.credentials
    .filter((each) => !each.is_deleted)
    .map(({ slot, name, credential_id: id, login_rejections: count, strategy }) => (
      <Group key={slot} gap="xs">
        {count > 0 && may("credential.unlock") && (
          <AskButton
            to={unlockCredential}
            input={{ params: { credentialId: id } }}
            changes={[keyOf(listCredentials), keyOf(readRun)]}
            label="Unlock"
            isPrimary
            of={name ?? id}
            title="Unlock this credential?"
            action="Unlock"
            done="The credential was unlocked."
          >
            Runs can log in with it again. If the login is still wrong, the target may lock its user out.
          </AskButton>
        )}
        {may("run.trigger") && (
          <TestLoginButton
            credential={id}
            name={name ?? id}
            label="Test login"
            isPrimary={count === 0}
            onStarted={(runId) => go(`/runs/${runId}`)}
          />
        )}
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
