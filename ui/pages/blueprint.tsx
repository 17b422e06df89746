import { Anchor, Code, Stack, Tabs, Text } from "@mantine/core";
import { lazy, Suspense } from "react";
import { Link, useParams, useSearchParams } from "wouter";
import { RETIRED_NAME, runStateName } from "#domain/labels/states.ts";
import {
  listBlueprintVersions,
  publishBlueprintVersion,
  readBlueprint,
  readBlueprintVersion,
  restoreBlueprint,
  retireBlueprint,
} from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { DocumentEditor } from "../parts/document-editor.tsx";
import { Facts } from "../parts/facts.tsx";
import { Loading } from "../parts/loading.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { DOCUMENT_KEYS } from "../parts/publish-dialog.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Section } from "../parts/section.tsx";
import { ratioOf } from "../parts/success-rate.ts";
import { formatDuration, Time } from "../parts/time.tsx";
import { VersionList } from "../parts/version-list.tsx";
import { LatestRuns } from "./latest-runs.tsx";
import { TryForm, type Blueprint } from "./blueprint-try.tsx";

const RUNS_SHOWN = 5;

const GraphDrawing = lazy(async () => ({ default: (await import("../parts/graph.tsx")).GraphDrawing }));
const BlueprintHealth = lazy(async () => ({
  default: (await import("./blueprint-health.tsx")).BlueprintHealth,
}));

export function BlueprintPage() {
  const { account = "", name = "" } = useParams();
  const params = { account, blueprintKey: name };
  const blueprint = useRead(readBlueprint, { params });
  const { may } = useSignedIn();
  const { data } = blueprint;
  return (
    <>
      <PageHead
        title={data?.name ?? name}
        about={data?.retired === true ? <Mark tone="quiet">{RETIRED_NAME}</Mark> : `${name} · ${account}`}
      >
        {data && may("config.apply") && <RetireButton of={data} params={params} />}
      </PageHead>
      <Reading of={blueprint}>{(read) => <BlueprintTabs blueprint={read} params={params} />}</Reading>
    </>
  );
}

function RetireButton({
  of: { retired, name },
  params,
}: {
  readonly of: Blueprint;
  readonly params: { readonly account: string; readonly blueprintKey: string };
}) {
  const common = { input: { params }, changes: DOCUMENT_KEYS, size: "sm", of: name } as const;
  if (retired)
    return (
      <AskButton
        {...common}
        to={restoreBlueprint}
        label="Restore"
        title="Restore this Blueprint?"
        action="Restore"
        done="The Blueprint was restored."
      >
        Triggers of this Blueprint are accepted again.
      </AskButton>
    );
  return (
    <AskButton
      {...common}
      to={retireBlueprint}
      label="Retire"
      title="Retire this Blueprint?"
      action="Retire"
      done="The Blueprint was retired."
    >
      New triggers are rejected; runs in progress continue. You can restore it later.
    </AskButton>
  );
}

function BlueprintTabs(props: {
  readonly blueprint: Blueprint;
  readonly params: { readonly account: string; readonly blueprintKey: string };
}) {
  const { blueprint, params } = props;
  const { may } = useSignedIn();
  const [search, setSearch] = useSearchParams();
  return (
    <Tabs
      value={search.get("tab") ?? "graph"}
      keepMounted={false}
      onChange={(tab) => setSearch(tab === null || tab === "graph" ? {} : { tab })}
    >
      <Tabs.List mb="lg">
        <Tabs.Tab value="graph">Overview</Tabs.Tab>
        <Tabs.Tab value="document">Document</Tabs.Tab>
        <Tabs.Tab value="health">Health</Tabs.Tab>
        <Tabs.Tab value="versions">Versions</Tabs.Tab>
        {may("run.try") && !blueprint.retired && <Tabs.Tab value="try">Try it</Tabs.Tab>}
      </Tabs.List>
      <Tabs.Panel value="graph">
        <Stack gap="xl">
          <Section title="Graph">
            <Drawing graph={blueprint.graph} />
          </Section>
          <Section title="About">
            <BlueprintFacts of={blueprint} />
          </Section>
          <LatestRuns of={{ account: params.account, blueprint: params.blueprintKey }} limit={RUNS_SHOWN} />
        </Stack>
      </Tabs.Panel>
      <Tabs.Panel value="document">
        <BlueprintDocument blueprint={blueprint} params={params} onPublished={() => setSearch({})} />
      </Tabs.Panel>
      <Tabs.Panel value="health">
        <Suspense fallback={<Loading what="Loading the health" />}>
          <BlueprintHealth params={params} />
        </Suspense>
      </Tabs.Panel>
      <Tabs.Panel value="versions">
        <VersionList
          list={listBlueprintVersions}
          listInput={{ params, query: {} }}
          read={readBlueprintVersion}
          inputOf={(version) => ({ params: { ...params, version: String(version) }, query: {} })}
          publish={publishBlueprintVersion}
          publishInputOf={(version) => ({ params: { ...params, version: String(version) } })}
        />
      </Tabs.Panel>
      <Tabs.Panel value="try">
        <TryForm blueprint={blueprint} />
      </Tabs.Panel>
    </Tabs>
  );
}

function BlueprintDocument(props: {
  readonly blueprint: Blueprint;
  readonly params: { readonly account: string; readonly blueprintKey: string };
  readonly onPublished: () => void;
}) {
  const { blueprint, params } = props;
  const { may } = useSignedIn();
  const [search] = useSearchParams();
  if (!may("config.apply"))
    return (
      <Code block tabIndex={0}>
        {blueprint.yaml}
      </Code>
    );
  return (
    <DocumentEditor
      of={{
        kind: "blueprint",
        account: params.account,
        id: params.blueprintKey,
        version: blueprint.version,
      }}
      label="The Blueprint's document"
      initial={blueprint.yaml}
      startAt={search.get("node")}
      onPublished={props.onPublished}
    >
      {({ graph }) =>
        graph && (
          <Section title="Preview">
            <Drawing graph={graph} />
          </Section>
        )
      }
    </DocumentEditor>
  );
}

export function Drawing({ graph }: { readonly graph: Blueprint["graph"] }) {
  return (
    <Suspense fallback={<Loading what="Loading the graph" />}>
      <GraphDrawing graph={graph} />
    </Suspense>
  );
}

function BlueprintFacts({ of: blueprint }: { readonly of: Blueprint }) {
  const run = blueprint.last_run;
  return (
    <Facts
      of={[
        ["Version", String(blueprint.version)],
        [
          "Published",
          <Text key="applied" size="sm" component="span">
            <Time at={blueprint.applied_at} />{" "}
            {blueprint.applied_by === null ? "by the command line" : `by ${blueprint.applied_by}`}
          </Text>,
        ],
        [
          "Last run",
          run === null ? (
            "never run"
          ) : (
            <Anchor key="run" component={Link} href={`/runs/${run.id}`} size="sm">
              {runStateName(run.status, run.progress_step)} <Time at={run.created_at} />
            </Anchor>
          ),
        ],
        ["Completed, of the last runs", ratioOf(blueprint.recent_runs)],
        [
          "Credentials",
          blueprint.credentials.map(({ slot, strategy }) => `${slot}: ${strategy}`).join(", ") || null,
        ],
        ["Inputs", blueprint.inputs.map((input) => input.ref_key).join(", ") || null],
        ["Metadata", blueprint.metadata.map((item) => item.name).join(", ") || null],
        ["Hosts without a credential", blueprint.hosts.join(", ") || null],
        ["Timeout", formatDuration(blueprint.timeout_ms)],
      ]}
    />
  );
}
