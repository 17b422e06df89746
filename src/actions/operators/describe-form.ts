import { textIn, type Language } from "#domain/language.ts";
import type { JsonObject } from "#domain/json.ts";
import { readStrategy } from "#domain/strategy.ts";

/** Describes the hosted form of a checked strategy in one language, for the preview next to an editor. */
export function describeForm(document: JsonObject, language: Language) {
  const { name, description, fields } = readStrategy(document);
  return {
    name: textIn(name, language),
    description: description && textIn(description, language),
    fields: fields.map((field) => ({
      key: field.key,
      label: textIn(field.label, language),
      type: field.type,
      is_required: field.required,
      is_secret: field.secret,
      placeholder: field.placeholder && textIn(field.placeholder, language),
      help: field.help && textIn(field.help, language),
      options: field.options.map(({ value, label }) => ({ value, label: textIn(label, language) })),
    })),
  };
}
