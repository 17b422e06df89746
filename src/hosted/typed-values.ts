import { textIn } from "#domain/language.ts";
import type { FieldType, Strategy } from "#domain/strategy.ts";
import { isSecret } from "./pages/form-control.ts";
import type { Typed } from "./pages/message-pages.ts";
import type { Wording } from "./texts/texts.ts";

const SHOWN_TYPES: ReadonlySet<FieldType> = new Set(["text", "email", "url", "textarea"]);

/** The entered values of a late form, without everything that may be secret. */
export function listTyped(
  { fields }: Strategy,
  submitted: ReadonlyMap<string, string>,
  { language }: Wording,
): readonly Typed[] {
  return fields
    .filter((field) => SHOWN_TYPES.has(field.type) && !isSecret(field))
    .map((field) => ({ label: textIn(field.label, language), value: submitted.get(field.key) ?? "" }))
    .filter(({ value }) => value.trim() !== "");
}
