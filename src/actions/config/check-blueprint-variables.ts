import type { ExpressionScopeKind } from "#domain/expression.ts";
import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import { suggestion } from "#domain/config-nearest.ts";
import type { LocatedUse } from "./read-expressions.ts";

/** The names that the expressions of a Blueprint may use. */
export interface BlueprintNames {
  readonly inputs: ReadonlySet<string>;
  readonly metadata: ReadonlySet<string>;
  /** The kind of each node's output; null if it can't be determined. */
  readonly nodes: ReadonlyMap<string, "value" | "records" | "results" | null>;
}

const RUN_PARTS = ["id", "key", "name"];
const COUNTS_PARTS = ["total", "valid", "invalid"];
const EVERYWHERE = ["inputs", "metadata", "run", "nodes"];
const PER_PAGE = ["page", "cursor", "offset"];
const PER_RECORD = ["index", "isValid", "errors"];

const VARIABLES: Readonly<Record<ExpressionScopeKind, readonly string[]>> = {
  run: EVERYWHERE,
  counts: [...EVERYWHERE, "counts"],
  record: [...EVERYWHERE, ...PER_RECORD],
  response: EVERYWHERE,
  page: [...EVERYWHERE, "page"],
  request: EVERYWHERE,
  write: [...EVERYWHERE, "token"],
  "record-write": [...EVERYWHERE, ...PER_RECORD, "token"],
  verify: [...EVERYWHERE, "token"],
  login: [],
  "login-response": [],
};

/** Finds variables that don't exist at their place (docs/blueprints.md#expressions). */
export function checkBlueprintVariables(
  uses: readonly LocatedUse[],
  names: BlueprintNames,
): readonly ConfigFinding[] {
  return uses.flatMap((use) => {
    const message = explainUse(use, names);
    return message === null ? [] : [{ path: use.path, message }];
  });
}

function explainUse({ name, parts, scope, added }: LocatedUse, names: BlueprintNames): string | null {
  const variables = [...VARIABLES[scope], ...added];
  if (!variables.includes(name)) return explainAbsent(name, variables);
  const part = parts[0];
  switch (name) {
    case "inputs":
      return part === undefined || names.inputs.has(part)
        ? null
        : `no INPUT has the refKey ${quote(part)}${suggestion(part, names.inputs, "there are")}`;
    case "metadata":
      return part === undefined || names.metadata.has(part)
        ? null
        : `no metadata item has the name ${quote(part)}${suggestion(part, names.metadata, "there are")}`;
    case "nodes":
      return explainNode(part, names);
    case "run":
      return explainPart("run", part, RUN_PARTS);
    case "counts":
      return explainPart("counts", part, COUNTS_PARTS);
    default:
      return null;
  }
}

function explainAbsent(name: string, variables: readonly string[]): string {
  if (name === "credential")
    return "secrets are never in scope in a Blueprint; only a strategy's `login` sees `$credential`";
  if (name === "counts") return "`$counts` exists only in `when`";
  if (PER_RECORD.includes(name)) return `\`$${name}\` exists only where a node works per record`;
  if (name === "record")
    return "`$record` exists only in expressions over an answer of a node with `for_each`, and in a loop; elsewhere the record is the root, so write its fields";
  if (name === "steps") return "`$steps` exists only in a loop: in its steps and in its `gives`";
  if (PER_PAGE.includes(name))
    return `\`$${name}\` exists only in a request whose \`paginate\` has \`${name}\`, and in its expressions`;
  if (name === "token") return "`$token` exists only in writes, one per record";
  return `unknown variable \`$${name}\`${suggestion(
    `$${name}`,
    variables.map((each) => `$${each}`),
    "here there are",
  )}`;
}

function explainPart(variable: string, part: string | undefined, known: readonly string[]): string | null {
  if (part === undefined || known.includes(part)) return null;
  return `\`$${variable}\` has no ${quote(part)}${suggestion(part, known, "it has")}`;
}

/** `$nodes.x` is an edge of the graph, so it must say which node. */
function explainNode(part: string | undefined, { nodes }: BlueprintNames): string | null {
  if (part === undefined)
    return "`$nodes` must name a node, as in `$nodes.<node id>`; the order of the nodes depends on it";
  const gives = nodes.get(part);
  if (gives === undefined)
    return `there is no node ${quote(part)}${suggestion(part, nodes.keys(), "there are")}`;
  if (gives === "value")
    return `the node ${quote(part)} outputs a value, and \`$nodes\` has only records; use \`$inputs.<refKey>\` for an INPUT`;
  if (gives === "results")
    return `the node ${quote(part)} is an output and can't be read from; name the node that it reads`;
  return null;
}
