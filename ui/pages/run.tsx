import { Anchor, Stack, Text } from "@mantine/core";
import { Link, useLocation, useParams } from "wouter";
import { readRun } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { Run } from "../parts/answers.ts";
import { Copyable } from "../parts/copyable.tsx";
import { Facts } from "../parts/facts.tsx";
import { LinkIf } from "../parts/link-if.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { RunStatusMark } from "../parts/run-status.tsx";
import { Section } from "../parts/section.tsx";
import { TestLoginButton } from "../parts/test-login-button.tsx";
import { useNow } from "../parts/now.ts";
import { formatDuration, Time } from "../parts/time.tsx";
import { RunActions } from "./run-actions.tsx";
import { TriggerContent } from "./run-trigger.tsx";
import { RunResults } from "./run-results.tsx";
import { RunSteps } from "./run-steps.tsx";
import { readTimeline, splitDuration } from "./run-timeline.ts";

const isOver = ({ status }: Run): boolean => ["completed", "failed", "cancelled"].includes(status);

export function RunPage() {
  const { runId = "" } = useParams();
  const first = useRead(readRun, { params: { runId } });
  const isLive = first.data === undefined || !isOver(first.data);
  const run = useRead(readRun, { params: { runId } }, { live: isLive });
  return (
    <>
      {run.data === undefined && <PageHead title="Run" />}
      <Reading of={run}>{(data) => <RunDetail run={data} />}</Reading>
    </>
  );
}

function RunDetail({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  const title = run.name ?? (run.blueprint === null ? "Test login" : run.id);
  return (
    <>
      <PageHead
        title={title}
        windowTitle={`${title}, ${run.status}`}
        about={<RunStatusMark status={run.status} step={run.progress_step} />}
      >
        <RunActions run={run} />
      </PageHead>
      <Stack gap="xl">
        <RunNotes run={run} />
        <Section title="About">
          <RunFacts run={run} />
        </Section>
        <RunSteps run={run} />
        {run.results.length > 0 && may("run.results") && <RunResults run={run} />}
        <TriggerContent run={run} />
      </Stack>
    </>
  );
}

/** Notes that are important enough to be shown first. */
function RunNotes({ run }: { readonly run: Run }) {
  const review = run.reviews.find(({ status }) => status === "open");
  return (
    <>
      {run.status === "failed" && (
        <Note tone="bad" title={run.failure === null ? "Failed" : `Failed: ${run.failure}`}>
          {run.failure_detail ?? "See the failed step below."}
          {run.failure === "login" && <LoginRemedy run={run} />}
        </Note>
      )}
      {review && (
        <Note tone="waiting" title="This run awaits a review">
          <Anchor component={Link} href={`/reviews/${review.id}`} size="sm">
            Open the review
          </Anchor>
        </Note>
      )}
      {run.blueprint === null && <TestLoginNote run={run} />}
      {run.waits_for !== null && (
        <Note tone="quiet" title="Waiting for another run">
          Runs with the credential {run.waits_for} take turns. This one starts when the other has ended.
        </Note>
      )}
      {run.asks_again_at !== null && (
        <Note tone="waiting" title="Waiting for the target">
          A node polls the target; the next poll is <Time at={run.asks_again_at} />. The run holds nothing
          meanwhile.
        </Note>
      )}
      {run.purged_at !== null && (
        <Note tone="quiet" title="Data purged">
          Inputs, results and step outputs were deleted <Time at={run.purged_at} isExact />.
        </Note>
      )}
    </>
  );
}

/** The page where the credential can be unlocked and its login tested. */
function LoginRemedy({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  const [used] = run.credentials;
  if (used === undefined || !may("credential.read")) return null;
  return (
    <Anchor
      component={Link}
      href={`/strategies/${run.account}/${used.strategy}?tab=credentials`}
      size="sm"
      display="block"
    >
      Unlock the credential or test its login
    </Anchor>
  );
}

const RunLink = ({ id }: { readonly id: string }) => (
  <Anchor component={Link} href={`/runs/${id}`} size="sm">
    {id}
  </Anchor>
);

/** A run without a Blueprint. */
function TestLoginNote({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  const [, go] = useLocation();
  const credential = run.credentials[0]?.credential_id;
  return (
    <Note tone="quiet" title="This is a test login">
      <Text size="sm" mb="xs">
        A worker logs in with the credential, as in any run, and does nothing else. Customers don't see it.
      </Text>
      {credential !== undefined && run.ended_at !== null && may("run.trigger") && (
        <TestLoginButton
          credential={credential}
          name="it"
          label="Test the login again"
          onStarted={(id) => go(`/runs/${id}`)}
        />
      )}
    </Note>
  );
}

/** The time from the trigger to the end, or until now, and how it was spent. */
function Duration({ of: run }: { readonly of: Run }) {
  const timeline = readTimeline(run, useNow());
  return (
    <>
      {formatDuration(timeline.toMs - timeline.fromMs)}
      <Text size="xs" c="dimmed">
        {splitDuration(timeline)
          .filter(([, ms]) => ms > 0)
          .map(([name, ms]) => `${name} ${formatDuration(ms)}`)
          .join(", ")}
      </Text>
    </>
  );
}

function RunFacts({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  return (
    <Facts
      of={[
        [
          "Blueprint",
          run.blueprint === null ? null : (
            <LinkIf key="of" to={may("config.read") && `/blueprints/${run.account}/${run.blueprint}`}>
              {`${run.blueprint}, version ${run.blueprint_version}`}
            </LinkIf>
          ),
        ],
        [
          "Account",
          <LinkIf key="account" to={may("config.read") && `/accounts/${run.account}`}>
            {run.account}
          </LinkIf>,
        ],
        ["Triggered", <Time key="at" at={run.created_at} isExact />],
        ["Duration", <Duration key="took" of={run} />],
        ["Run ID", <Copyable key="id" text={run.id} name="the run ID" />],
        ["Run key", <Copyable key="key" text={run.run_key} name="the run key" />],
        ["API key", run.api_key_id],
        ["Started by", run.started_by],
        ["Rerun of", run.again_of === null ? null : <RunLink key="of" id={run.again_of} />],
        [
          "Reruns",
          run.reruns.length === 0 ? null : (
            <Stack key="as" gap={2}>
              {run.reruns.map((id) => (
                <RunLink key={id} id={id} />
              ))}
            </Stack>
          ),
        ],
        ["Retried requests", run.retries === 0 ? null : run.retries],
        ["Lost workers", run.lost_leases === 0 ? null : run.lost_leases],
        [
          "Timeout",
          run.deadline_at === null || run.ended_at !== null ? null : <Time key="end" at={run.deadline_at} />,
        ],
      ]}
    />
  );
}
