import { stampEdition } from "#domain/edition.ts";
import { openYaml } from "./open-yaml.ts";
import { readDocuments } from "./read-documents.ts";

/** A document in JSON has neither comments nor a layout to keep. */
const isJson = (text: string): boolean => text.trimStart().startsWith("{");

/** A directive only counts at the beginning of a file: an export could not contain it. */
const hasDirective = (text: string): boolean => /^%/m.test(text);

/** The text to store with a version, with a line break at its end; null: none. */
export function keptText(text: string): string | null {
  if (isJson(text) || hasDirective(text)) return null;
  return text.endsWith("\n") ? text : `${text}\n`;
}

/**
 * Whether the text is that of the stored document, and not another one's: versions are signed, their texts are not. A text without
 * `edition` is that of a document of the latest one.
 */
export function isTextOf(text: string, document: string): boolean {
  const { documents, problems } = readDocuments([{ file: "", text }]);
  const [one] = documents;
  return (
    problems.length === 0 &&
    documents.length === 1 &&
    one !== undefined &&
    JSON.stringify(stampEdition(one.value)) === document
  );
}

/** The text of a document with `retired` set or removed; its comments stay. */
export function withRetired(text: string, retired: boolean): string {
  const document = openYaml().parseDocument(text, { schema: "core" });
  if (retired) document.set("retired", true);
  else document.delete("retired");
  return document.toString({ lineWidth: 0 });
}
