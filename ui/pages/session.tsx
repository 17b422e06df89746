import { Button, Group, Stack, Text } from "@mantine/core";
import { useParams } from "wouter";
import {
  linkCredentialSession,
  listCredentialSessions,
  readCredentialSession,
  revokeCredentialSession,
} from "../api/operations.ts";
import { keyOf, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { AskButton } from "../parts/ask-button.tsx";
import { Copyable } from "../parts/copyable.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { LinkIf } from "../parts/link-if.tsx";
import { MetadataChips } from "../parts/metadata-chips.tsx";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { References } from "../parts/references.tsx";
import { Reading } from "../parts/reading.tsx";
import { Section } from "../parts/section.tsx";
import { shortId } from "../parts/short-id.ts";
import { Time } from "../parts/time.tsx";
import { SessionState } from "./session-state.tsx";

type Session = AnswerOf<typeof readCredentialSession>;

export function SessionPage() {
  const { sessionId = "" } = useParams();
  const session = useRead(readCredentialSession, { params: { sessionId } }, { live: true });
  const { data } = session;
  return (
    <>
      <PageHead
        title={data ? (data.name ?? "Session without a label") : "Session"}
        about={
          data && (
            <Group gap="xs" align="flex-start">
              {/* Announced when it changes. */}
              <output>
                <SessionState of={data} />
              </output>
              {data.customer !== null && <MetadataChips of={{ customer: data.customer }} />}
            </Group>
          )
        }
      />
      <Reading of={session}>
        {(read) => (
          <Stack gap="xl">
            <Section title="Link">
              <SessionLink session={read} />
            </Section>
            <Section title="History">
              <History session={read} />
            </Section>
            <Section title="About">
              <About session={read} />
            </Section>
          </Stack>
        )}
      </Reading>
    </>
  );
}

const WITHOUT_LINK: Readonly<Record<string, string>> = {
  completed: "The form was submitted. Its link accepts nothing more.",
  expired: "The session has expired. The account's backend can create a new one.",
};

/** What can be done with the link to the form. */
function SessionLink({ session }: { readonly session: Session }) {
  const { may } = useSignedIn();
  if (session.embedded_session_id !== null)
    return (
      <Text size="sm">
        Part of the embedded session {session.embedded_session_id}: the customer&apos;s page shows the form.
      </Text>
    );
  const ended = WITHOUT_LINK[session.status];
  if (ended !== undefined) return <Text size="sm">{ended}</Text>;
  return (
    <Stack gap="sm" align="flex-start">
      <Text size="sm">
        Not submitted yet. The link expires <Time at={session.expires_at} />.
      </Text>
      {may("session.manage") && (
        <Group gap="xs" align="flex-start">
          <GetLink session={session} />
          <AskButton
            to={revokeCredentialSession}
            input={{ params: { sessionId: session.id } }}
            changes={[keyOf(readCredentialSession), keyOf(listCredentialSessions)]}
            label="Revoke the session"
            isDanger
            title="Revoke this session?"
            action="Revoke the session"
            done="The session was revoked."
          >
            Its link stops working now. An end user who has the form open can&apos;t submit it. This
            can&apos;t be undone.
          </AskButton>
        </Group>
      )}
    </Stack>
  );
}

/** Anyone who has the link can fill in the form, so it is shown only on demand. */
function GetLink({ session }: { readonly session: Session }) {
  const getting = useOperation(linkCredentialSession, { changes: [] });
  const url = getting.data?.hosted_url;
  if (url !== undefined)
    return (
      <Note tone="quiet" title="Give it only to the end user whose login it is">
        <Copyable text={url} name="the link" />
      </Note>
    );
  return (
    <>
      {getting.failure && <FailureNote error={getting.failure} />}
      <Button
        size="xs"
        loading={getting.isPending}
        onClick={() => getting.mutate({ params: { sessionId: session.id } })}
      >
        Show the link
      </Button>
    </>
  );
}

/** What has happened with it so far, and what comes next. */
function History({ session }: { readonly session: Session }) {
  const { opened_at: opened, completed_at: completed, expires_at: expires } = session;
  const isOver = completed === null && session.status !== "pending";
  const events: readonly (readonly [text: string, at: string | null])[] = [
    [
      session.created_by === null
        ? "Created: its link was given out"
        : `Created by ${session.created_by}, which was given its link`,
      session.created_at,
    ],
    [opened === null ? "The link has not been opened" : "The link was first opened", opened],
    ...(session.sign_in_failed_at === null
      ? []
      : [[`A sign-in at the target failed: ${session.sign_in_failure}`, session.sign_in_failed_at] as const]),
    completed === null
      ? [isOver ? "Expired without a login" : "Expires, unless the form is sent", expires]
      : ["The login was stored as a credential", completed],
  ];
  return (
    <ol className="plain-list">
      {events.map(([text, at]) => (
        <li key={text}>
          <Group gap="md" py={4} wrap="nowrap" align="baseline">
            <Text size="sm" c="dimmed" w="11.5rem" className="no-wrap">
              {at === null ? "–" : <Time at={at} isExact />}
            </Text>
            <Text size="sm">{text}</Text>
          </Group>
        </li>
      ))}
    </ol>
  );
}

function About({ session }: { readonly session: Session }) {
  const { may } = useSignedIn();
  const { account, strategy, credential_id: credential, blueprint } = session;
  return (
    <Facts
      of={[
        ["ID", <Copyable key="id" text={session.id} shown={shortId(session.id)} name="the ID" />],
        ["Created by", session.created_by],
        ["Metadata", session.metadata && <References key="metadata" of={session.metadata} />],
        [
          "Credential",
          credential === null ? null : (
            <LinkIf key="credential" to={`/credentials/${credential}`}>
              {shortId(credential)}
            </LinkIf>
          ),
        ],
        [
          "Strategy",
          <span key="strategy">
            <LinkIf to={may("config.read") && `/strategies/${account}/${strategy}`}>{strategy}</LinkIf>,
            version {session.strategy_version}
          </span>,
        ],
        [
          "Account",
          <LinkIf key="account" to={may("config.read") && `/accounts/${account}`}>
            {account}
          </LinkIf>,
        ],
        [
          "Blueprint",
          blueprint === null ? null : (
            <span key="blueprint">
              <LinkIf to={may("config.read") && `/blueprints/${account}/${blueprint}`}>{blueprint}</LinkIf>
              {session.slot !== null && `, slot ${session.slot}`}
            </span>
          ),
        ],
        ["Returns to", session.return_url],
      ]}
    />
  );
}
