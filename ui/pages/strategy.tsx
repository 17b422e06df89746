import { Anchor, Code, Stack, Tabs } from "@mantine/core";
import { Link, useParams, useSearchParams } from "wouter";
import { RETIRED_NAME } from "#domain/labels/states.ts";
import {
  listCredentials,
  listStrategyVersions,
  publishStrategyVersion,
  readStrategy,
  readStrategyVersion,
  restoreStrategy,
  retireStrategy,
} from "../api/operations.ts";
import { useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { DocumentEditor } from "../parts/document-editor.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { Facts } from "../parts/facts.tsx";
import { FormPreview } from "../parts/form-preview.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { DOCUMENT_KEYS } from "../parts/publish-dialog.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Section } from "../parts/section.tsx";
import { Time } from "../parts/time.tsx";
import { VersionList } from "../parts/version-list.tsx";
import { CredentialTable } from "./credential-list.tsx";
import { useStrategyLogins } from "./strategy-logins.tsx";

type Strategy = AnswerOf<typeof readStrategy>;

export function StrategyPage() {
  const { account = "", name = "" } = useParams();
  const params = { account, strategyId: name };
  const strategy = useRead(readStrategy, { params });
  const { may } = useSignedIn();
  const { data } = strategy;
  return (
    <>
      <PageHead
        title={data?.name ?? name}
        about={data?.retired === true ? <Mark tone="quiet">{RETIRED_NAME}</Mark> : `${name} · ${account}`}
      >
        {data && may("config.apply") && <RetireButton of={data} params={params} />}
      </PageHead>
      <Reading of={strategy}>{(read) => <StrategyTabs strategy={read} params={params} />}</Reading>
    </>
  );
}

function RetireButton({
  of: { retired, name },
  params,
}: {
  readonly of: Strategy;
  readonly params: { readonly account: string; readonly strategyId: string };
}) {
  const common = { input: { params }, changes: DOCUMENT_KEYS, size: "sm", of: name } as const;
  if (retired)
    return (
      <AskButton
        {...common}
        to={restoreStrategy}
        label="Restore"
        title="Restore this strategy?"
        action="Restore"
        done="The strategy was restored."
      >
        Sessions can be created with it again.
      </AskButton>
    );
  return (
    <AskButton
      {...common}
      to={retireStrategy}
      label="Retire"
      title="Retire this strategy?"
      action="Retire"
      done="The strategy was retired."
    >
      No new sessions can be created with it; existing credentials keep working. You can restore it later.
    </AskButton>
  );
}

function StrategyTabs(props: {
  readonly strategy: Strategy;
  readonly params: { readonly account: string; readonly strategyId: string };
}) {
  const { strategy, params } = props;
  const { may } = useSignedIn();
  const [search, setSearch] = useSearchParams();
  return (
    <Tabs
      value={search.get("tab") ?? "form"}
      keepMounted={false}
      onChange={(tab) => setSearch(tab === null || tab === "form" ? {} : { tab })}
    >
      <Tabs.List mb="lg">
        <Tabs.Tab value="form">Overview</Tabs.Tab>
        <Tabs.Tab value="document">Document</Tabs.Tab>
        <Tabs.Tab value="versions">Versions</Tabs.Tab>
        {may("credential.read") && <Tabs.Tab value="credentials">Credentials</Tabs.Tab>}
      </Tabs.List>
      <Tabs.Panel value="form">
        <Stack gap="xl">
          <Section title="About">
            <StrategyFacts of={strategy} account={params.account} />
          </Section>
          <Section title="Form preview" isBare>
            <FormPreview document={strategy.yaml} />
          </Section>
        </Stack>
      </Tabs.Panel>
      <Tabs.Panel value="document">
        <StrategyDocument strategy={strategy} params={params} onPublished={() => setSearch({})} />
      </Tabs.Panel>
      <Tabs.Panel value="versions">
        <VersionList
          list={listStrategyVersions}
          listInput={{ params, query: {} }}
          read={readStrategyVersion}
          inputOf={(version) => ({ params: { ...params, version: String(version) }, query: {} })}
          publish={publishStrategyVersion}
          publishInputOf={(version) => ({ params: { ...params, version: String(version) } })}
        />
      </Tabs.Panel>
      {may("credential.read") && (
        <Tabs.Panel value="credentials">
          <StrategyCredentials account={params.account} strategy={params.strategyId} />
        </Tabs.Panel>
      )}
    </Tabs>
  );
}

function StrategyDocument(props: {
  readonly strategy: Strategy;
  readonly params: { readonly account: string; readonly strategyId: string };
  readonly onPublished: () => void;
}) {
  const { strategy, params } = props;
  const { may } = useSignedIn();
  if (!may("config.apply"))
    return (
      <Code block tabIndex={0}>
        {strategy.yaml}
      </Code>
    );
  return (
    <DocumentEditor
      of={{
        kind: "strategy",
        account: params.account,
        id: params.strategyId,
        version: strategy.version,
      }}
      label="The strategy's document"
      initial={strategy.yaml}
      onPublished={props.onPublished}
    >
      {({ form }, text) =>
        form && (
          <Section title="Form preview" isBare>
            <FormPreview document={text} />
          </Section>
        )
      }
    </DocumentEditor>
  );
}

const CREDENTIALS_SHOWN = 20;

/** The strategy's credentials, with which logins can be tested. */
function StrategyCredentials(query: { readonly account: string; readonly strategy: string }) {
  const credentials = useRead(listCredentials, { query: { ...query, limit: CREDENTIALS_SHOWN } });
  return (
    <Reading of={credentials}>
      {({ items, next_cursor: next }) =>
        items.length === 0 ? (
          <EmptyState title="No credentials yet">
            The login is tested with a credential, which comes when an end user fills in the form of this
            strategy.
          </EmptyState>
        ) : (
          <Section
            title={next === null ? `Credentials (${items.length})` : `The newest ${items.length} credentials`}
            isBare
            actions={
              <Anchor component={Link} href={`/credentials?${new URLSearchParams(query)}`} size="sm">
                View all
              </Anchor>
            }
          >
            <CredentialTable credentials={items} isOfStrategy />
          </Section>
        )
      }
    </Reading>
  );
}

function StrategyFacts({ of: strategy, account }: { readonly of: Strategy; readonly account: string }) {
  const loginsOf = useStrategyLogins();
  return (
    <Facts
      of={[
        ["Version", String(strategy.version)],
        ["Published", <Time key="applied" at={strategy.applied_at} />],
        ["Published by", strategy.applied_by ?? "the command line"],
        ["Login", strategy.login_type],
        ["Logins at present", <span key="logins">{loginsOf({ account, id: strategy.id })}</span>],
        ["Allowed hosts", strategy.hosts.join(", ") || "none"],
      ]}
    />
  );
}
