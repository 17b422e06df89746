import { Button, Group, NumberInput, SimpleGrid, Stack, Textarea, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState, type FormEvent } from "react";
import { useParams } from "wouter";
import { changeAccount, listAccounts, readAccount } from "../api/operations.ts";
import { keyOf, useOperation, useRead, useSignedIn } from "../api/queries.ts";
import { ApiFailure } from "../api/failure.ts";
import type { AnswerOf } from "../api/request.ts";
import { Copyable } from "../parts/copyable.tsx";
import { Facts } from "../parts/facts.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { sayProposed } from "../parts/proposed.ts";
import { Reading } from "../parts/reading.tsx";
import { Section } from "../parts/section.tsx";
import { formatDuration, Time } from "../parts/time.tsx";
import { readOrigins } from "./origin-lines.ts";

type Account = AnswerOf<typeof readAccount>;

export function AccountPage() {
  const { account = "" } = useParams();
  const read = useRead(readAccount, { params: { account } });
  return (
    <>
      <PageHead title={read.data?.name ?? account} about={account} />
      <Reading of={read}>{(data) => <AccountParts account={data} />}</Reading>
    </>
  );
}

function AccountParts({ account }: { readonly account: Account }) {
  const { may } = useSignedIn();
  return (
    <Stack gap="xl">
      <Section title="About">
        <Facts
          of={[
            ["ID", <Copyable key="id" text={account.id} name="the ID" />],
            ["Created", <Time key="made" at={account.created_at} />],
            ["Changed", <Time key="changed" at={account.updated_at} />],
            ["Session lifetime", formatDuration(account.session_lifetime_ms)],
            ["Retention", formatDuration(account.retention_ms)],
            [
              "Rate limit per API key",
              account.rate_limit === null
                ? "unlimited"
                : `${account.rate_limit.per_second} requests per second, bursts of ${account.rate_limit.burst}`,
            ],
            ["Allowed return origins", account.allowed_origins.join(", ") || "none yet"],
            ["Concurrency", String(account.concurrency)],
            ["Changing where credentials go", account.two_person ? "needs two admins" : "needs one operator"],
          ]}
        />
      </Section>
      {may("config.apply") && (
        <Section title="Settings">
          <AccountForm key={account.updated_at} account={account} />
        </Section>
      )}
    </Stack>
  );
}

/** Checked before anything is sent, and so before a second factor is asked for. */
function useOrigins(given: readonly string[]) {
  const [text, setText] = useState(given.join("\n"));
  const [problem, setProblem] = useState<string | null>(null);
  /** Null: a line is no origin, and `problem` says which. */
  const read = (): readonly string[] | null => {
    const found = readOrigins(text);
    setProblem("problem" in found ? found.problem : null);
    return "problem" in found ? null : found.origins;
  };
  return { text, setText, problem, read };
}

function AccountForm({ account }: { readonly account: Account }) {
  const [name, setName] = useState(account.name);
  const origins = useOrigins(account.allowed_origins);
  const [concurrency, setConcurrency] = useState<number | string>(account.concurrency);
  const [colour, setColour] = useState(account.branding.accent_color ?? "");
  const [support, setSupport] = useState(account.branding.support_url ?? "");
  const changing = useOperation(changeAccount, {
    changes: [keyOf(readAccount), keyOf(listAccounts)],
    onDone: ({ proposal }) =>
      notifications.show({ message: proposal ? sayProposed(proposal) : "Changes saved." }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const allowed = origins.read();
    if (allowed === null) return;
    changing.mutate({
      params: { account: account.account },
      body: {
        name,
        allowed_origins: [...allowed],
        concurrency: Number(concurrency),
        branding: { accent_color: colour || null, support_url: support || null },
      },
    });
  };
  const { failure } = changing;
  const wrong = (field: string): string | undefined =>
    failure instanceof ApiFailure
      ? failure.details.find((detail) => detail.field?.startsWith(field) === true)?.message
      : undefined;
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        {failure && <FailureNote error={failure} />}
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <TextInput label="Name" value={name} onChange={(event) => setName(event.currentTarget.value)} />
          <NumberInput label="Concurrency" min={1} value={concurrency} onChange={setConcurrency} />
          <TextInput
            label="Colour of buttons and links"
            placeholder="#3355ff"
            value={colour}
            error={wrong("branding.accent_color")}
            onChange={(event) => setColour(event.currentTarget.value)}
          />
          <TextInput
            label="Support URL for end users"
            placeholder="https://help.example.com"
            value={support}
            error={wrong("branding.support_url")}
            onChange={(event) => setSupport(event.currentTarget.value)}
          />
        </SimpleGrid>
        <Textarea
          label="Allowed return origins"
          description="One per line, for example https://app.example.com"
          autosize
          minRows={2}
          value={origins.text}
          error={origins.problem ?? wrong("allowed_origins")}
          onChange={(event) => origins.setText(event.currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button type="submit" loading={changing.isPending}>
            Save changes
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
