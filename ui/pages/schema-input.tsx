import { Fieldset, NativeSelect, SimpleGrid, TextInput } from "@mantine/core";
import { useState } from "react";
import { jsonOfFields, valuesOfJson, type SchemaField } from "./schema-fields.ts";

/** An input whose value is an object, with a field for each of its properties. */
export function SchemaInput(props: {
  readonly label: string;
  readonly fields: readonly SchemaField[];
  /** The JSON with which its fields begin; empty: with nothing. */
  readonly begins: string;
  /** Why the property was refused. */
  readonly wrong: (name: string) => string | undefined;
  readonly onChange: (json: string) => void;
}) {
  const { fields } = props;
  const [values, setValues] = useState(() => valuesOfJson(fields, props.begins));
  const set = (name: string, value: string): void => {
    const next = { ...values, [name]: value };
    setValues(next);
    props.onChange(jsonOfFields(fields, next));
  };
  return (
    <Fieldset legend={props.label}>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        {fields.map((field) => (
          <Field
            key={field.name}
            of={field}
            value={values[field.name] ?? ""}
            problem={props.wrong(field.name)}
            onChange={(value) => set(field.name, value)}
          />
        ))}
      </SimpleGrid>
    </Fieldset>
  );
}

function Field(props: {
  readonly of: SchemaField;
  readonly value: string;
  readonly problem: string | undefined;
  readonly onChange: (value: string) => void;
}) {
  const { label, about, kind, options, isRequired } = props.of;
  const common = {
    label,
    ...(about !== null && { description: about }),
    withAsterisk: isRequired,
    error: props.problem,
    value: props.value,
  };
  if (kind === "choice" || kind === "boolean")
    return (
      <NativeSelect
        {...common}
        data={[
          { value: "", label: "Not given" },
          ...(kind === "choice"
            ? options.map((value) => ({ value, label: value }))
            : [
                { value: "true", label: "Yes" },
                { value: "false", label: "No" },
              ]),
        ]}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      />
    );
  return (
    <TextInput
      {...common}
      type={kind === "date" ? "date" : "text"}
      inputMode={kind === "number" ? "decimal" : undefined}
      onChange={(event) => props.onChange(event.currentTarget.value)}
    />
  );
}
