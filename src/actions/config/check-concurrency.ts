import { suggestion } from "#domain/config-nearest.ts";
import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import { isJsonObject, type Json } from "#domain/json.ts";
import { readGroupKey } from "#domain/run-group.ts";

/** The names that keys of a Blueprint's `concurrency` may refer to. */
interface KeyNames {
  readonly metadata: readonly string[];
  readonly credentials: readonly string[];
}

export function checkConcurrency(concurrency: Json | undefined, names: KeyNames): readonly ConfigFinding[] {
  const key = isJsonObject(concurrency) ? concurrency["key"] : undefined;
  const isList = Array.isArray(key);
  return (isList ? key : [key]).flatMap((each, index) => {
    const read = typeof each === "string" ? readGroupKey(each) : undefined;
    if (read === undefined || names[read.of].includes(read.name)) return [];
    const what = read.of === "metadata" ? "metadata item" : "credential slot";
    const others = suggestion(read.name, names[read.of], "there are");
    return [
      {
        path: ["concurrency", "key", ...(isList ? [index] : [])],
        message: `the Blueprint has no ${what} ${quote(read.name)}${names[read.of].length > 0 ? others : "; add it"}`,
      },
    ];
  });
}
