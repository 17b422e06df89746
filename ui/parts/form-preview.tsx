import type { readStrategy } from "../api/operations.ts";
import type { AnswerOf } from "../api/request.ts";
import {
  Checkbox,
  Code,
  FileInput,
  NativeSelect,
  Paper,
  PasswordInput,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";

export type Form = AnswerOf<typeof readStrategy>["form"];
type Field = Form["fields"][number];

/** A preview of the hosted form. Nothing that is entered here is sent. */
export function FormPreview({ form }: { readonly form: Form }) {
  return (
    <Paper withBorder radius="lg" p="lg" maw={440} component="section" aria-label="Preview of the form">
      <Stack gap="md">
        <div>
          <Text fw={650} size="lg">
            {form.name}
          </Text>
          {form.description !== null && (
            <Text size="sm" c="dimmed">
              {form.description}
            </Text>
          )}
        </div>
        {form.fields.length === 0 && <Text size="sm">The form has no fields.</Text>}
        {form.fields.map((field) => (
          <Control key={field.key} field={field} />
        ))}
      </Stack>
    </Paper>
  );
}

function Control({ field }: { readonly field: Field }) {
  const common = {
    label: field.is_required ? field.label : `${field.label} (optional)`,
    ...(field.help !== null && { description: field.help }),
    autoComplete: "off",
  };
  const placeholder = field.placeholder ?? undefined;
  if (field.type === "checkbox") return <Checkbox label={common.label} description={field.help} />;
  if (field.type === "select")
    return <NativeSelect {...common} data={field.options.map(({ value, label }) => ({ value, label }))} />;
  if (field.type === "file") return <FileInput label={common.label} description={field.help} />;
  if (field.type === "textarea")
    return <Textarea {...common} {...(placeholder !== undefined && { placeholder })} />;
  if (field.type === "headers")
    return (
      <div>
        <Text size="sm" fw={500}>
          {common.label}
        </Text>
        <Code>name: value</Code>
      </div>
    );
  const Input = field.is_secret ? PasswordInput : TextInput;
  return <Input {...common} {...(placeholder !== undefined && { placeholder })} />;
}
