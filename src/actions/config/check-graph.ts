import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import { suggestion } from "#domain/config-nearest.ts";
import { findCycle } from "#domain/config-order.ts";
import type { DraftNode } from "./read-nodes.ts";
import type { LocatedUse } from "./read-expressions.ts";

type NodesById = ReadonlyMap<string, DraftNode>;

/** Checks the connections: sources exist and have the right kind of output, and there are no cycles. */
export function checkGraph(
  drafts: readonly DraftNode[],
  usesOf: ReadonlyMap<DraftNode, readonly LocatedUse[]>,
): readonly ConfigFinding[] {
  const byId: NodesById = new Map(
    drafts.toReversed().flatMap((draft) => (draft.id === null ? [] : [[draft.id, draft] as const])),
  );
  return [
    ...drafts.flatMap((draft) => [
      ...checkSources(draft, byId),
      ...checkCounts(draft, byId, usesOf.get(draft) ?? []),
      ...checkInputWhen(draft, usesOf.get(draft) ?? []),
    ]),
    ...checkCycles(drafts, byId, usesOf),
  ];
}

function checkSources(draft: DraftNode, byId: NodesById): readonly ConfigFinding[] {
  const { nodeType, sources, path, value } = draft;
  const findings = sources.flatMap((each) => {
    const message = explainSource(each, draft, byId);
    return message === null ? [] : [{ path: each.path, message }];
  });
  if (nodeType === null) return findings;
  const from = value["from"];
  if (nodeType.takes === "none" && from !== undefined) {
    const message = `a node of type ${quote(nodeType.type)} takes no \`from\`; remove it`;
    return [
      ...findings.filter((finding) => finding.path[path.length] !== "from"),
      { path: [...path, "from"], at: "key", message },
    ];
  }
  // An output with `handles` has its sources there; its own check reports if both or none are given.
  if (nodeType.takes !== "none" && from === undefined && draft.gives !== "results") {
    return [
      ...findings,
      {
        path,
        message: `a node of type ${quote(nodeType.type)} needs \`from\`: the id of the node whose ${nodeType.takes} it reads`,
      },
    ];
  }
  return findings;
}

function explainSource(
  { source, takes: own }: DraftNode["sources"][number],
  { nodeType, id }: DraftNode,
  byId: NodesById,
): string | null {
  const found = byId.get(source);
  if (found === undefined) return explainUnknown(source, byId, id);
  if (found.gives === "results")
    return `the node ${quote(source)} is an output and can't be read from; name the node that it reads`;
  const takes = own ?? nodeType?.takes ?? "none";
  if (takes === "none" || found.gives === null || found.gives === takes) return null;
  return takes === "records"
    ? `the node ${quote(source)} outputs a value, and ${quote(nodeType?.type ?? "")} reads records; put a node of type \`parse\` between them`
    : `the node ${quote(source)} outputs records, and ${own === undefined ? quote(nodeType?.type ?? "") : "this key"} reads a value`;
}

function explainUnknown(source: string, byId: NodesById, id: string | null): string {
  const [node = "", handle] = source.split(".");
  if (handle !== undefined && byId.has(node))
    return `the node ${quote(node)} has no handles to read from; write ${quote(node)}`;
  const others = [...byId.keys()].filter((other) => other !== id && byId.get(other)?.gives !== "results");
  return `there is no node ${quote(source)}${suggestion(source, others, "there are")}`;
}

/** `$counts` refers to the node's `from`, which must output records. */
function checkCounts(
  draft: DraftNode,
  byId: NodesById,
  uses: readonly LocatedUse[],
): readonly ConfigFinding[] {
  const kinds = draft.sources.map(({ source }) => byId.get(source)?.gives ?? null);
  if (kinds.some((kind) => kind !== "value")) return [];
  return uses
    .filter((use) => use.scope === "counts" && use.name === "counts")
    .map(({ path }) => ({
      path,
      message: "`$counts` counts the records of the node's `from`, and this node reads none",
    }));
}

/** Inputs precede all other nodes, so that every node sees the same `$inputs`. */
function checkInputWhen({ type }: DraftNode, uses: readonly LocatedUse[]): readonly ConfigFinding[] {
  if (type !== "input") return [];
  const message =
    "an input comes before all other nodes, so its `when` can't read `$nodes`; put the `when` on the node that reads it";
  return uses.filter(({ name }) => name === "nodes").map(({ path }) => ({ path, message }));
}

function checkCycles(
  drafts: readonly DraftNode[],
  byId: NodesById,
  usesOf: ReadonlyMap<DraftNode, readonly LocatedUse[]>,
): readonly ConfigFinding[] {
  const dependencies = new Map(
    [...byId].map(([id, draft]) => {
      const uses = (usesOf.get(draft) ?? []).flatMap(({ name, parts }) =>
        name === "nodes" && parts[0] !== undefined ? [parts[0]] : [],
      );
      return [id, [...draft.sources.map(({ source }) => source), ...uses]] as const;
    }),
  );
  const findings: ConfigFinding[] = [];
  let ids = drafts.flatMap(({ id }) => (id === null ? [] : [id]));
  // One finding per cycle. The nodes of a cycle are excluded from the search for further ones.
  for (let cycle = findCycle(ids, dependencies); cycle !== undefined; cycle = findCycle(ids, dependencies)) {
    const [first = "", ...rest] = cycle;
    const trail = [first, ...rest].map(quote).join(" reads ");
    const message =
      rest.length === 1
        ? `the node ${quote(first)} reads itself; name another node`
        : `the nodes depend on each other in a cycle: ${trail}; remove one of these edges`;
    findings.push({ path: byId.get(first)?.path ?? ["nodes"], message });
    ids = ids.filter((id) => !cycle.includes(id));
  }
  return findings;
}
