import { isId } from "./ids.ts";
import type { MetadataItem } from "./blueprint.ts";

/** One top-level value of a trigger's body, in either encoding. */
export type BodyValue =
  /** A JSON string or an inline part: passes through unchanged. Spec, Top-level key routing. */
  | { readonly kind: "string"; readonly text: string }
  /** Any other JSON value, serialised with its numbers' digits as written. */
  | {
      readonly kind: "json";
      readonly text: string;
      readonly isNull: boolean;
      readonly items: readonly string[] | null;
    }
  /** A file part, already in the object store. JSON can never produce one. */
  | {
      readonly kind: "file";
      readonly blobKey: string;
      readonly filename: string | null;
      readonly contentType: string | null;
      readonly sizeBytes: number;
      readonly sha256: Uint8Array;
    };

export type TriggerBody = ReadonlyMap<string, BodyValue>;

/** The kind of a key in the body, by the rows of the interface's routing table. */
export type Route = "credentials" | "run_name" | "input" | "metadata" | "ignored";

export interface RoutingTable {
  readonly inputRefKeys: ReadonlySet<string>;
  readonly metadata: readonly MetadataItem[];
}

/** Spec, Top-level key routing. Reserved names first; `apply` refuses documents whose names collide. */
export function routeKey(key: string, table: RoutingTable): Route {
  if (key === "credential_id" || key === "credential_ids") return "credentials";
  if (key === "run_name") return "run_name";
  if (table.inputRefKeys.has(key)) return "input";
  if (table.metadata.some((item) => item.name === key)) return "metadata";
  return "ignored";
}

/** The keys that the Blueprint does not declare. Spec, Top-level key routing: "Silently ignored". */
export function ignoredKeys(keys: Iterable<string>, table: RoutingTable): readonly string[] {
  return [...keys].filter((key) => routeKey(key, table) === "ignored");
}

export interface RoutedTrigger {
  readonly credentials: readonly { readonly field: string; readonly value: BodyValue }[];
  readonly runName: BodyValue | null;
  readonly inputs: ReadonlyMap<string, BodyValue>;
  readonly metadata: ReadonlyMap<string, BodyValue>;
  readonly ignoredKeys: readonly string[];
}

/** Routes every key. An explicit `null` counts as omitted (docs/api.md#triggers). */
export function routeTrigger(body: TriggerBody, table: RoutingTable): RoutedTrigger {
  const credentials: { field: string; value: BodyValue }[] = [];
  const inputs = new Map<string, BodyValue>();
  const metadata = new Map<string, BodyValue>();
  const ignoredKeys: string[] = [];
  let runName: BodyValue | null = null;
  for (const [key, value] of body) {
    const route = routeKey(key, table);
    if (route === "ignored") ignoredKeys.push(key);
    else if (value.kind === "json" && value.isNull) continue;
    else if (route === "credentials") credentials.push({ field: key, value });
    else if (route === "run_name") runName = value;
    else if (route === "input") inputs.set(key, value);
    else metadata.set(key, value);
  }
  return { credentials, runName, inputs, metadata, ignoredKeys };
}

/** Spec, POST /blueprints/{blueprintKey}/trigger 2: the required metadata items that the body leaves out. */
export function missingMetadata(routed: RoutedTrigger, table: RoutingTable): readonly string[] {
  return table.metadata
    .filter((item) => item.required && !routed.metadata.has(item.name))
    .map((item) => item.name);
}

/** The ids in `credential_id` / `credential_ids`, in the caller's order, each once; `malformed`: the first that is not an id. */
export function readCredentialIds(value: BodyValue): {
  readonly ids: readonly string[];
  readonly malformed: string | null;
} {
  const texts =
    value.kind === "string"
      ? value.text.split(",")
      : value.kind === "json" && value.items
        ? value.items
        : null;
  if (!texts) return { ids: [], malformed: value.kind };
  const ids = texts.map((text) => text.trim()).filter((text) => text !== "");
  const malformed = ids.find((id) => !isId("credential", id));
  return { ids: [...new Set(ids)], malformed: malformed ?? null };
}

/** Fills slots in document order, credentials in the caller's order among those of the slot's strategy. docs/api.md#credentials-of-a-trigger. */
export function fillSlots<C extends { readonly id: string; readonly strategyId: string }>(
  slots: readonly { readonly slot: string; readonly strategyId: string }[],
  credentials: readonly C[],
): { readonly filled: readonly { slot: string; credential: C }[]; readonly problem: string | null } {
  const left = [...credentials];
  const filled: { slot: string; credential: C }[] = [];
  for (const { slot, strategyId } of slots) {
    const index = left.findIndex((credential) => credential.strategyId === strategyId);
    const credential = left[index];
    if (!credential) {
      const needs = `The Blueprint needs a credential of strategy ${strategyId} for its slot "${slot}"`;
      const others = left.map((each) => `${each.id} is of strategy ${each.strategyId}`);
      const given = others.length === 0 ? ", and none was given" : `; ${others.join(", ")}`;
      return { filled, problem: `${needs}${given}.` };
    }
    left.splice(index, 1);
    filled.push({ slot, credential });
  }
  // A Blueprint without slots ignores valid credentials; one with slots refuses a surplus.
  const surplus = slots.length > 0 ? left[0] : undefined;
  return {
    filled,
    problem: surplus
      ? `Credential ${surplus.id} does not fit any of the Blueprint's free credential slots.`
      : null,
  };
}
