import { isJsonObject, type Json } from "#domain/json.ts";

const NAME = /^[A-Za-z][A-Za-z0-9_]*$/;
/** Words that are more than a name in some place of an expression. */
const WORDS: ReadonlySet<string> = new Set(["and", "or", "in", "true", "false", "null", "function"]);

/**
 * What an expression gives that is a field's name and nothing else, as most `records` are: it needs no thread, since it can
 * neither hang nor grow. Null: it is more than that, or its root is no object.
 */
export function readPlainField(
  source: string,
  root: Json | undefined,
): { readonly value: Json | undefined } | null {
  if (!NAME.test(source) || WORDS.has(source) || !isJsonObject(root)) return null;
  if (Object.hasOwn(root, source)) return { value: root[source] };
  // What objects inherit here (`toString`) a thread knows better.
  return source in root ? null : { value: undefined };
}
