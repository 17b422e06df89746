import { isJsonObject, type JsonObject } from "#domain/json.ts";
import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import { commonLoginKeys, commonNodeKeys } from "#domain/config-schema.ts";
import { parseDuration } from "#domain/duration.ts";
import { loginTypes } from "#strategies/registry.ts";
import type { DocumentKind } from "./identify-document.ts";
import { readExpressions } from "./read-expressions.ts";
import { readNodes, type DraftNode } from "./read-nodes.ts";
import { ownKeys, withCommonKeys } from "./typed-config.ts";

/** Warnings of a valid document, which is applied anyway. */
export function warnOf(kind: DocumentKind, document: JsonObject): readonly ConfigFinding[] {
  switch (kind) {
    case "account":
      return [];
    case "strategy":
      return warnOfLogin(document["login"]);
    case "blueprint":
      return warnOfNodes(readNodes(document["nodes"]));
  }
}

function warnOfLogin(login: JsonObject[string] | undefined): readonly ConfigFinding[] {
  if (!isJsonObject(login)) return [];
  const { type, cache } = login;
  const isCached = cache !== undefined && parseDuration(cache) !== 0;
  const warnings =
    (typeof type === "string" ? loginTypes.get(type) : undefined)?.warn?.(
      ownKeys(login, commonLoginKeys),
      isCached,
    ) ?? [];
  return warnings.map(({ path, ...rest }) => ({ ...rest, path: ["login", ...path] }));
}

function warnOfNodes(drafts: readonly DraftNode[]): readonly ConfigFinding[] {
  return [
    ...drafts.flatMap(({ nodeType, config, path }) =>
      (nodeType?.warn?.(config) ?? []).map((warning) => ({ ...warning, path: [...path, ...warning.path] })),
    ),
    ...warnOfUnread(drafts),
  ];
}

/** A read-only node that nothing reads: usually a `from` names the wrong node. */
function warnOfUnread(drafts: readonly DraftNode[]): readonly ConfigFinding[] {
  const read = new Set(
    drafts.flatMap(({ nodeType, value, path, sources, requestScope }) => {
      const { uses } =
        nodeType === null
          ? { uses: [] }
          : readExpressions(withCommonKeys(commonNodeKeys, nodeType), value, path, requestScope);
      return [
        ...sources.map(({ source }) => source),
        ...uses.flatMap(({ name, parts }) => (name === "nodes" ? parts.slice(0, 1) : [])),
      ];
    }),
  );
  return drafts.flatMap(({ id, type, nodeType, config, gives, path }) => {
    // `$inputs` reads an input by its refKey, and an unread input can serve as metadata.
    if (id === null || nodeType === null || read.has(id) || type === "input") return [];
    if (gives === "results" || nodeType.isGate === true || nodeType.effect(config) === "write") return [];
    return [
      {
        path,
        message: `nothing reads the output of the node ${quote(id)}; name it in a \`from\`, or remove it`,
      },
    ];
  });
}
