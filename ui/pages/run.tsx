import { blueprintWaitName, throttleWaitName } from "#domain/labels/states.ts";
import { Anchor, Button, Group, List, Stack, Text } from "@mantine/core";
import { Link, useLocation, useParams } from "wouter";
import { listReviews, readRun } from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { Run } from "../parts/answers.ts";
import { runTitle } from "../parts/run-title.ts";
import { Copyable } from "../parts/copyable.tsx";
import { Facts } from "../parts/facts.tsx";
import { LinkIf } from "../parts/link-if.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { RunOutcomeMark, RunStatusMark } from "../parts/run-status.tsx";
import { Section } from "../parts/section.tsx";
import { TestLoginButton } from "../parts/test-login-button.tsx";
import { Time } from "../parts/time.tsx";
import { MetadataChips } from "../parts/metadata-chips.tsx";
import { countRecords, ReviewDeadline } from "./review-list.tsx";
import { LivePage } from "./live-page.tsx";
import { PurgeButton, RunActions } from "./run-actions.tsx";
import { DurationSplit } from "./run-duration.tsx";
import { RunFailure } from "./run-failure.tsx";
import { TriggerContent } from "./run-trigger.tsx";
import { RunResults } from "./run-results.tsx";
import { WrongRecordsNote } from "./wrong-records-note.tsx";
import { RunSteps } from "./run-steps.tsx";
import { shortId } from "../parts/short-id.ts";

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
  const wrong = run.records_with_errors ?? 0;
  const title = run.blueprint === null ? runTitle(run) : (run.name ?? run.id);
  return (
    <>
      <PageHead
        title={title}
        windowTitle={`${title}, ${run.status}`}
        about={
          <Group gap="xs">
            {/* Announced when it changes. */}
            <output>
              {run.failure === null ? (
                <RunOutcomeMark of={run} />
              ) : (
                <RunStatusMark status={run.status} step={run.progress_step} />
              )}
            </output>
            <MetadataChips of={run.metadata} />
            {run.blueprint === null && run.customer !== null && (
              <MetadataChips of={{ customer: run.customer }} />
            )}
          </Group>
        }
      >
        <RunActions run={run} />
      </PageHead>
      <Stack gap="xl">
        <RunNotes run={run} />
        {wrong > 0 && may("run.results") && <WrongRecordsNote run={run} wrong={wrong} />}
        <LivePage run={run} />
        <Section title="About" actions={<PurgeButton run={run} />}>
          <Stack gap="md">
            <DurationSplit of={run} />
            <RunFacts run={run} />
          </Stack>
        </Section>
        <RunSteps run={run} />
        {run.results.length > 0 && may("run.results") && <RunResults run={run} wrong={wrong} />}
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
      {run.status === "failed" && <RunFailure run={run} />}
      {review && <ReviewNote id={review.id} />}
      {run.ignored_keys.length > 0 && <IgnoredKeys of={run.ignored_keys} />}
      {run.blueprint === null && run.status !== "failed" && <TestLoginNote run={run} />}
      {run.waits_for !== null && (
        <Note tone="quiet" title="Waiting for another run">
          Runs with the credential {run.waits_for} take turns. This one starts when the other has ended.
        </Note>
      )}
      {run.blueprint_wait !== null && (
        <Note tone="quiet" title="Waiting for another run">
          It waits for {blueprintWaitName(run.blueprint_wait)}. It starts when one of them has ended.
        </Note>
      )}
      {run.throttle_wait !== null && (
        <Note tone="quiet" title="Waiting for its turn">
          It waits for {throttleWaitName(run.throttle_wait)}. It holds nothing meanwhile, and its timeout
          stands still.
        </Note>
      )}
      {run.browser_wait === "missing" && (
        <Note tone="bad" title="No worker has a browser">
          This run needs one and waits until a worker has one. Install Chromium where the workers run (on
          Debian and Ubuntu: <code>apt install chromium-headless-shell</code>), or set{" "}
          <code>LATCHKEY_BROWSER</code> to the path of one. The run holds nothing meanwhile, and its timeout
          stands still.
        </Note>
      )}
      {run.browser_wait === "taken" && (
        <Note tone="quiet" title="Waiting for a browser">
          Other runs have all browsers of the workers (<code>LATCHKEY_BROWSERS</code>). This one is called
          when one of them is free, and its timeout stands still.
        </Note>
      )}
      {run.begins_at !== null && run.status === "queued" && (
        <Note tone="quiet" title="Delayed by its caller">
          It may begin <Time at={run.begins_at} isExact />. It holds nothing meanwhile.
        </Note>
      )}
      {run.expires_at !== null && run.status === "queued" && run.claimed_at === null && (
        <Note tone="quiet" title="Expires unless it begins">
          If no worker has taken it <Time at={run.expires_at} isExact />, it fails.
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

/** A name that was typed wrongly loses its value: it is said where it is seen. */
function IgnoredKeys({ of: keys }: { readonly of: Run["ignored_keys"] }) {
  return (
    <Note
      tone="quiet"
      title={
        keys.length === 1
          ? "A key of the trigger was ignored"
          : `${keys.length} keys of the trigger were ignored`
      }
    >
      <List size="sm" aria-label="Ignored keys">
        {keys.map(({ name, did_you_mean: nearest }) => (
          <List.Item key={name}>
            <code>{name}</code>: the Blueprint does not define it
            {nearest !== null && (
              <>
                . Did you mean <code>{nearest}</code>?
              </>
            )}
          </List.Item>
        ))}
      </List>
    </Note>
  );
}

/** What is to be decided, and until when. */
function ReviewNote({ id }: { readonly id: string }) {
  const reviews = useRead(listReviews, {}, { live: true });
  const review = reviews.data?.items.find((each) => each.id === id);
  return (
    <Note tone="waiting" title="This run awaits a review">
      {review && (
        <Text size="sm">
          {countRecords(review)}. <ReviewDeadline of={review} />
          {review.expires_at !== null && "."}
        </Text>
      )}
      <Button component={Link} href={`/reviews/${id}`} size="xs" mt="xs">
        Open the review
      </Button>
    </Note>
  );
}

const RunLink = ({ id }: { readonly id: string }) => (
  <Anchor component={Link} href={`/runs/${id}`} size="sm" title={id}>
    {shortId(id)}
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
        A worker logs in with the credential, as in any run, and does nothing else. The account's backend
        doesn't see it.
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

function UsedCredentials({ of: credentials }: { readonly of: Run["credentials"] }) {
  const { may } = useSignedIn();
  return (
    <Stack gap={2}>
      {credentials.map((each) => (
        <span key={each.slot}>
          <LinkIf to={!each.is_deleted && may("credential.read") && `/credentials/${each.credential_id}`}>
            {each.name ?? each.credential_id}
          </LinkIf>
          <Text size="xs" c="dimmed" component="div">
            {each.slot}, {each.strategy} version {each.strategy_version}
          </Text>
        </span>
      ))}
    </Stack>
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
        ["Run ID", <Copyable key="id" text={run.id} shown={shortId(run.id)} name="the run ID" />],
        [
          "Run key",
          <Copyable key="key" text={run.run_key} shown={shortId(run.run_key)} name="the run key" />,
        ],
        [
          "API key",
          run.api_key_id === null ? null : (
            <LinkIf key="api" to={may("key.read") && "/keys"}>
              {shortId(run.api_key_id)}
            </LinkIf>
          ),
        ],
        [
          "Credentials",
          run.credentials.length === 0 ? null : <UsedCredentials key="credentials" of={run.credentials} />,
        ],
        ["Started by", run.started_by],
        ["Schedule", run.schedule],
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
