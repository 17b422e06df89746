import { pathInDocument, readFailedStep } from "#domain/failed-step.ts";
import { readSources } from "./read-sources.ts";

/** `file:line:column` of the browser's step that the message of a failed run names; null: it names none. */
export async function findFailedPlace(
  message: string,
  blueprintKey: string,
  paths: readonly string[],
): Promise<string | null> {
  const failed = readFailedStep(message);
  if (failed === null) return null;
  const { readDocuments } = await import("#actions/config/read-documents.ts");
  const [kind, name] = failed.strategy === null ? ["blueprint", blueprintKey] : ["strategy", failed.strategy];
  const document = readDocuments(readSources(paths)).documents.find(({ value }) => value[kind] === name);
  const path = document && pathInDocument(failed, document.value);
  if (!document || !path) return null;
  const { line, column } = document.position(path);
  return `${document.file}:${line}:${column}`;
}
