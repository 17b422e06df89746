import {
  Button,
  Checkbox,
  Group,
  NativeSelect,
  NumberInput,
  SimpleGrid,
  Stack,
  TextInput,
} from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState, type FormEvent } from "react";
import { REVIEW_STEP_UP_NAMES } from "#domain/labels/states.ts";
import { changeAccount, listAccounts, readAccount } from "../api/operations.ts";
import { keyOf, useOperation } from "../api/queries.ts";
import { ApiFailure } from "../api/failure.ts";
import type { AnswerOf } from "../api/request.ts";
import { durationText } from "../parts/duration-text.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { FieldGroup } from "../parts/field-group.tsx";
import { sayProposed } from "../parts/proposed.ts";
import { BrandFields } from "./account-brand.tsx";
import { OriginLines, useOrigins } from "./account-origins.tsx";

type Account = AnswerOf<typeof readAccount>;

/** What stands in the fields. */
function useSettings(account: Account) {
  return useState({
    name: account.name,
    sessionLifetime: durationText(account.session_lifetime_ms),
    retention: durationText(account.retention_ms),
    concurrency: account.concurrency as number | string,
    isLimited: account.rate_limit !== null,
    perSecond: (account.rate_limit?.per_second ?? 500) as number | string,
    burst: (account.rate_limit?.burst ?? 1_000) as number | string,
    hasOwnFrames: account.embed_origins !== null,
    stepUp: account.review_step_up,
    isTwoPerson: account.two_person,
    brand: account.branding,
  });
}
export type Settings = ReturnType<typeof useSettings>[0];

/** Every key of the account's document. Only what was changed is sent. */
export function AccountForm({ account }: { readonly account: Account }) {
  const [given, setGiven] = useSettings(account);
  const [before] = useState(given);
  const returns = useOrigins(account.allowed_origins);
  const frames = useOrigins(account.embed_origins ?? []);
  const set = (change: Partial<Settings>): void => setGiven((now) => ({ ...now, ...change }));
  const changing = useOperation(changeAccount, {
    changes: [keyOf(readAccount), keyOf(listAccounts)],
    onDone: ({ proposal }) =>
      notifications.show({ message: proposal ? sayProposed(proposal) : "Changes saved." }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const allowed = returns.read();
    const framing = given.hasOwnFrames ? frames.read() : null;
    if (allowed === null || (given.hasOwnFrames && framing === null)) return;
    const body = changesOf(before, given, account, {
      allowed: [...allowed],
      framing: framing && [...framing],
    });
    changing.mutate({ params: { account: account.account }, body });
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
        <FieldGroup title="General">
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <GeneralFields given={given} set={set} wrong={wrong} />
          </SimpleGrid>
        </FieldGroup>
        <FieldGroup title="Hosted forms" about="Where end users may come from, and what they see.">
          <HostedFields given={given} set={set} wrong={wrong} returns={returns} frames={frames} />
        </FieldGroup>
        <FieldGroup title="Limits">
          <LimitFields given={given} set={set} wrong={wrong} />
        </FieldGroup>
        <FieldGroup title="Approval" about="Who has to agree, and how they prove who they are.">
          <ApprovalFields given={given} set={set} />
        </FieldGroup>
        <Group justify="flex-end">
          <Button type="submit" loading={changing.isPending}>
            Save changes
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

interface FieldsProps {
  readonly given: Settings;
  readonly set: (change: Partial<Settings>) => void;
}

interface CheckedFieldsProps extends FieldsProps {
  readonly wrong: (field: string) => string | undefined;
}

function GeneralFields({ given, set, wrong }: CheckedFieldsProps) {
  return (
    <>
      <TextInput
        label="Name"
        description="As operators see it"
        value={given.name}
        error={wrong("name")}
        onChange={(event) => set({ name: event.currentTarget.value })}
      />
      <TextInput
        label="Retention"
        description="How long the data of ended runs is kept, for example 30d"
        value={given.retention}
        error={wrong("retention")}
        onChange={(event) => set({ retention: event.currentTarget.value })}
      />
    </>
  );
}

function HostedFields({
  given,
  set,
  wrong,
  returns,
  frames,
}: CheckedFieldsProps & Readonly<Record<"returns" | "frames", ReturnType<typeof useOrigins>>>) {
  return (
    <>
      <TextInput
        label="Session lifetime"
        description="How long a link to a form works, for example 7d or 12h"
        value={given.sessionLifetime}
        error={wrong("session_lifetime")}
        onChange={(event) => set({ sessionLifetime: event.currentTarget.value })}
      />
      <OriginLines label="Allowed return origins" of={returns} problem={wrong("allowed_origins")} />
      <Checkbox
        label="Other origins may embed the form"
        checked={given.hasOwnFrames}
        onChange={(event) => set({ hasOwnFrames: event.currentTarget.checked })}
      />
      {given.hasOwnFrames && (
        <OriginLines label="Origins that may embed the form" of={frames} problem={wrong("embed_origins")} />
      )}
      <BrandFields given={given.brand} set={(brand) => set({ brand })} wrong={wrong} />
    </>
  );
}

function LimitFields({ given, set, wrong }: CheckedFieldsProps) {
  return (
    <>
      <NumberInput
        label="Concurrency"
        description="Runs that may execute at the same time"
        min={1}
        value={given.concurrency}
        error={wrong("concurrency")}
        onChange={(concurrency) => set({ concurrency })}
      />
      <Checkbox
        label="Limit the requests of each API key"
        checked={given.isLimited}
        onChange={(event) => set({ isLimited: event.currentTarget.checked })}
      />
      {given.isLimited && (
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <NumberInput
            label="Requests per second"
            min={1}
            value={given.perSecond}
            onChange={(perSecond) => set({ perSecond })}
          />
          <NumberInput
            label="Requests in a burst"
            min={1}
            value={given.burst}
            onChange={(burst) => set({ burst })}
          />
        </SimpleGrid>
      )}
    </>
  );
}

function ApprovalFields({ given, set }: FieldsProps) {
  return (
    <>
      <NativeSelect
        label="Second factor for reviews"
        description="Decisions that require a second factor from the last 30 minutes"
        value={given.stepUp}
        data={Object.entries(REVIEW_STEP_UP_NAMES).map(([value, label]) => ({ value, label }))}
        onChange={(event) => set({ stepUp: event.currentTarget.value as Settings["stepUp"] })}
      />
      <Checkbox
        label="Changes to where credentials go need two admins"
        description="Turning this off needs a second admin, too"
        checked={given.isTwoPerson}
        onChange={(event) => set({ isTwoPerson: event.currentTarget.checked })}
      />
    </>
  );
}

const isSame = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right);

function changesOf(
  before: Settings,
  after: Settings,
  account: Account,
  origins: { readonly allowed: string[]; readonly framing: string[] | null },
) {
  const isOther = (...names: readonly (keyof Settings)[]): boolean =>
    names.some((name) => !isSame(before[name], after[name]));
  const limit = { per_second: Number(after.perSecond), burst: Number(after.burst) };
  return {
    ...(isOther("name") && { name: after.name }),
    ...(isOther("sessionLifetime") && { session_lifetime: after.sessionLifetime.trim() }),
    ...(isOther("retention") && { retention: after.retention.trim() }),
    ...(isOther("concurrency") && { concurrency: Number(after.concurrency) }),
    ...(isOther("isLimited", "perSecond", "burst") && { rate_limit: after.isLimited ? limit : null }),
    ...(isOther("stepUp") && { review_step_up: after.stepUp }),
    ...(isOther("isTwoPerson") && { two_person: after.isTwoPerson }),
    ...(isOther("brand") && { branding: after.brand }),
    ...(!isSame(origins.allowed, account.allowed_origins) && { allowed_origins: origins.allowed }),
    ...(!isSame(origins.framing, account.embed_origins) && { embed_origins: origins.framing }),
  };
}
