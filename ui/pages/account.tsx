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
            ["Id", <Copyable key="id" text={account.id} name="the id" />],
            ["Made", <Time key="made" at={account.created_at} />],
            ["Changed", <Time key="changed" at={account.updated_at} />],
            ["Hosted forms can be opened for", formatDuration(account.session_lifetime_ms)],
            ["Data of ended runs is kept for", formatDuration(account.retention_ms)],
            [
              "Requests of each API key",
              account.rate_limit === null
                ? "not limited"
                : `${account.rate_limit.per_second} a second, ${account.rate_limit.burst} at once`,
            ],
            ["Return to", account.allowed_origins.join(", ") || "no origin yet"],
            ["Runs at once", String(account.concurrency)],
            ["Changes of where credentials go", account.two_person ? "need two admins" : "need one operator"],
          ]}
        />
      </Section>
      {may("config.apply") && (
        <Section title="Change it">
          <AccountForm key={account.updated_at} account={account} />
        </Section>
      )}
    </Stack>
  );
}

function AccountForm({ account }: { readonly account: Account }) {
  const [name, setName] = useState(account.name);
  const [origins, setOrigins] = useState(account.allowed_origins.join("\n"));
  const [concurrency, setConcurrency] = useState<number | string>(account.concurrency);
  const [colour, setColour] = useState(account.branding.accent_color ?? "");
  const [support, setSupport] = useState(account.branding.support_url ?? "");
  const changing = useOperation(changeAccount, {
    changes: [keyOf(readAccount), keyOf(listAccounts)],
    onDone: ({ proposal }) =>
      notifications.show({ message: proposal ? sayProposed(proposal) : "The account is changed." }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    changing.mutate({
      params: { account: account.account },
      body: {
        name,
        allowed_origins: origins.split(/\s+/).filter((origin) => origin !== ""),
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
          <NumberInput label="Runs at once" min={1} value={concurrency} onChange={setConcurrency} />
          <TextInput
            label="Colour of buttons and links"
            placeholder="#3355ff"
            value={colour}
            error={wrong("branding.accent_color")}
            onChange={(event) => setColour(event.currentTarget.value)}
          />
          <TextInput
            label="Where end users get help"
            placeholder="https://help.example.com"
            value={support}
            error={wrong("branding.support_url")}
            onChange={(event) => setSupport(event.currentTarget.value)}
          />
        </SimpleGrid>
        <Textarea
          label="Origins that a form may return to"
          description="One a line, like https://app.example.com"
          autosize
          minRows={2}
          value={origins}
          error={wrong("allowed_origins")}
          onChange={(event) => setOrigins(event.currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button type="submit" loading={changing.isPending}>
            Change the account
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
