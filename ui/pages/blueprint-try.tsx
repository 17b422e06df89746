import { Button, Group, NativeSelect, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";
import { useLocation } from "wouter";
import { listCredentials, listRuns, type readBlueprint, startRun } from "../api/operations.ts";
import { ApiFailure } from "../api/failure.ts";
import { keyOf, useOperation, useRead } from "../api/queries.ts";
import type { AnswerOf } from "../api/request.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { Note } from "../parts/note.tsx";
import { OUTWARD } from "../parts/outward.ts";
import { Section } from "../parts/section.tsx";
import { wordsOf } from "../parts/words-of.ts";
import { fieldsOfSchema } from "./schema-fields.ts";
import { credentialLabel } from "./credential-label.ts";
import { LastRun, type Triggered } from "./blueprint-last-run.tsx";
import { SchemaInput } from "./schema-input.tsx";

export type Blueprint = AnswerOf<typeof readBlueprint>;

/** The form's values of one kind, by name. */
type Values = Readonly<Record<string, string>>;

const CREDENTIALS_SHOWN = 200;

const filled = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));

/** What the form contains. */
function useTrigger() {
  const [inputs, setInputs] = useState<Values>({});
  const [metadata, setMetadata] = useState<Values>({});
  const [chosen, setChosen] = useState<Values>({});
  /** Counts how often it was filled in, so that fields of a schema take the new values. */
  const [filling, setFilling] = useState(0);
  const fillIn = (last: Triggered): void => {
    setInputs(last.inputs);
    setMetadata(last.metadata);
    setChosen(last.credentials);
    setFilling(filling + 1);
  };
  return { inputs, setInputs, metadata, setMetadata, chosen, setChosen, filling, fillIn };
}

/** The form for starting a run by hand, with everything that a trigger contains. */
export function TryForm({ blueprint }: { readonly blueprint: Blueprint }) {
  const { account, key } = blueprint;
  const [, go] = useLocation();
  const { inputs, setInputs, metadata, setMetadata, chosen, setChosen, filling, fillIn } = useTrigger();
  const starting = useOperation(startRun, {
    changes: [keyOf(listRuns)],
    onDone: ({ id }) => go(`/runs/${id}`),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    starting.mutate({
      params: { account, blueprintKey: key },
      body: {
        inputs: filled(inputs),
        metadata: filled(metadata),
        credential_ids: Object.values(filled(chosen)),
      },
    });
  };
  const { failure } = starting;
  const isOutward = blueprint.graph.nodes.some(({ type }) => OUTWARD.has(type));
  const wrong = (field: string): string | undefined =>
    failure instanceof ApiFailure ? failure.ofField(field) : undefined;
  return (
    <Section title="Try it">
      <form onSubmit={submit}>
        <Stack gap="md">
          <Note tone={isOutward ? "waiting" : "quiet"} title="This starts a real run">
            {isOutward
              ? "What the Blueprint writes to other systems is written now."
              : "No node of this Blueprint sends anything to another system."}
          </Note>
          <LastRun blueprint={blueprint} onRead={fillIn} />
          {failure && <FailureNote error={failure} />}
          {blueprint.credentials.map(({ slot, strategy }) => (
            <CredentialSelect
              key={slot}
              account={account}
              slot={slot}
              strategy={strategy}
              value={chosen[slot] ?? ""}
              onChange={(id) => setChosen({ ...chosen, [slot]: id })}
            />
          ))}
          <TryFields
            key={filling}
            blueprint={blueprint}
            metadata={metadata}
            inputs={inputs}
            wrong={wrong}
            onMetadata={setMetadata}
            onInputs={setInputs}
          />
          <Group justify="flex-end">
            <Button type="submit" loading={starting.isPending}>
              Start run
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}

function TryFields(props: {
  readonly blueprint: Blueprint;
  readonly metadata: Values;
  readonly inputs: Values;
  readonly wrong: (field: string) => string | undefined;
  readonly onMetadata: (metadata: Values) => void;
  readonly onInputs: (inputs: Values) => void;
}) {
  const { blueprint, metadata, inputs, wrong, onMetadata, onInputs } = props;
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        {blueprint.metadata.map(({ name, label, is_required: isRequired }) => (
          <TextInput
            key={name}
            label={label ?? wordsOf(name)}
            description={`Metadata, sent as ${name}`}
            withAsterisk={isRequired}
            value={metadata[name] ?? ""}
            error={wrong(name)}
            onChange={(event) => onMetadata({ ...metadata, [name]: event.currentTarget.value })}
          />
        ))}
      </SimpleGrid>
      {blueprint.inputs.map(({ ref_key: name, name: label, accepts, is_required: isRequired, schema }) => {
        const fields = fieldsOfSchema(schema);
        const set = (value: string): void => onInputs({ ...inputs, [name]: value });
        if (fields !== null)
          return (
            <SchemaInput
              key={name}
              label={label ?? wordsOf(name)}
              fields={fields}
              begins={inputs[name] ?? ""}
              wrong={(field) => wrong(`${name}.${field}`)}
              onChange={set}
            />
          );
        return (
          <Textarea
            key={name}
            label={label ?? wordsOf(name)}
            description={`Input, sent as ${name}: ${TAKES[accepts]}`}
            withAsterisk={isRequired}
            placeholder={EXAMPLES[accepts]}
            classNames={{ input: "code-input" }}
            spellCheck={false}
            autosize
            minRows={6}
            maxRows={16}
            value={inputs[name] ?? ""}
            error={wrong(name)}
            onChange={(event) => set(event.currentTarget.value)}
          />
        );
      })}
    </>
  );
}

/** The form that a value may have, where nothing is known of what it says. */
const EXAMPLES = {
  text: "number;supplier;total\n1042;Eastfield;79.20",
  json: '[\n  { "number": "1042", "total": 79.2 }\n]',
  file: "number;supplier;total\n1042;Eastfield;79.20",
  any: '[\n  { "number": "1042", "total": 79.2 }\n]',
} as const;
const TAKES = { text: "text", json: "JSON", file: "a file's content", any: "text or JSON" } as const;

function CredentialSelect(props: {
  readonly account: string;
  readonly slot: string;
  readonly strategy: string;
  readonly value: string;
  readonly onChange: (id: string) => void;
}) {
  const credentials = useRead(listCredentials, {
    query: { account: props.account, limit: CREDENTIALS_SHOWN },
  });
  const fitting = (credentials.data?.items ?? []).filter(({ strategy }) => strategy === props.strategy);
  if (credentials.data !== undefined && fitting.length === 0)
    return (
      <Text size="sm">
        The slot <b>{props.slot}</b> needs a credential of {props.strategy}, and there is none yet: an end
        user fills in a hosted form first.
      </Text>
    );
  return (
    <NativeSelect
      label={`Credential for ${props.slot}`}
      value={props.value}
      onChange={(event) => props.onChange(event.currentTarget.value)}
      data={[
        { value: "", label: "Choose a credential" },
        ...fitting.map(({ id, name }) => ({ value: id, label: credentialLabel({ id, name }, fitting) })),
      ]}
    />
  );
}
