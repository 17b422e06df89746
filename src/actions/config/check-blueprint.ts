import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { quote, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { suggestion } from "#domain/config-nearest.ts";
import { blueprintSchema, commonNodeKeys, configLimits } from "#domain/config-schema.ts";
import { Type } from "#lib/type.ts";
import { checkConcurrency } from "./check-concurrency.ts";
import { findGotoUrls } from "./check-browser.ts";
import { checkBlueprintVariables, type BlueprintNames } from "./check-blueprint-variables.ts";
import { checkGraph } from "./check-graph.ts";
import { checkSchedules } from "./check-schedules.ts";
import { checkSteps, readStepExpressions, stepDrafts, withoutSteps } from "./check-steps.ts";
import { checkNodes } from "./check-nodes.ts";
import { checkLiveHosts } from "./check-live-hosts.ts";
import { checkPlainHosts } from "./check-plain-hosts.ts";
import { checkCredentialUrls, checkPublicUrls, findRequestUrls } from "./check-request-urls.ts";
import { checkShape } from "./check-shape.ts";
import { checkDuration, checkOrigins, checkUnique, readOrigins, withoutSamePlace } from "./check-values.ts";
import { readExpressions, type LocatedUse } from "./read-expressions.ts";
import { readNodes, type DraftNode } from "./read-nodes.ts";
import { withCommonKeys } from "./typed-config.ts";

/** Spec, Top-level key routing: the keys of a trigger that belong to the service. */
const RESERVED_TRIGGER_KEYS = ["credential_id", "credential_ids", "run_name"];

/** What a Blueprint's check needs to know about the strategies of its account. */
export interface SlotStrategy {
  /** Origins that requests with its credentials may reach; null if its own document is invalid in this respect. */
  readonly hosts: readonly string[] | null;
}

const untypedNode = Type.Object(commonNodeKeys);

/** docs/blueprints.md describes Blueprint documents. `strategies`: those of its account, by id. */
export function checkBlueprint(
  document: JsonObject,
  strategies: ReadonlyMap<string, SlotStrategy>,
): readonly ConfigFinding[] {
  const drafts = readNodes(document["nodes"]);
  const read = drafts.map((draft) => {
    const schema = draft.nodeType === null ? untypedNode : withCommonKeys(commonNodeKeys, draft.nodeType);
    const own = readExpressions(
      schema,
      withoutSteps(draft),
      draft.path,
      draft.requestScope,
      draft.addedVariables,
    );
    const inside = readStepExpressions(draft);
    return {
      draft,
      uses: [...own.uses, ...inside.uses],
      findings: [...own.findings, ...inside.findings, ...checkSteps(draft, drafts, own.uses)],
    };
  });
  const metadataNames = readMetadataNames(document["metadata"]).map(({ name }) => name);
  const ofNodes = checkNodes(document["nodes"], drafts);
  const ofRequests = [
    ...read.flatMap(({ findings }) => findings),
    ...drafts.flatMap((draft) =>
      [draft, ...stepDrafts(draft)].flatMap((each) => checkCredential(each, document, strategies)),
    ),
  ];
  const usesOf: ReadonlyMap<DraftNode, readonly LocatedUse[]> = new Map(
    read.map(({ draft, uses }) => [draft, uses]),
  );
  return [
    ...checkShape(blueprintSchema, document, []),
    ...checkOrigins(document["hosts"], ["hosts"]),
    ...checkPlainHosts(document),
    ...checkLiveHosts(document),
    ...checkDuration(document["timeout"], ["timeout"], { maxMs: configLimits.runTimeoutMsMax }),
    ...checkDuration(document["retention"], ["retention"], { maxMs: configLimits.retentionMsMax }),
    ...checkSlots(document["credentials"], strategies),
    ...ofNodes,
    ...withoutSamePlace(ofRequests, ofNodes),
    ...checkTriggerKeys(document, drafts),
    ...checkConcurrency(document["concurrency"], {
      metadata: metadataNames,
      credentials: Object.keys(isJsonObject(document["credentials"]) ? document["credentials"] : {}),
    }),
    ...checkSchedules(document["schedules"], {
      metadata: metadataNames,
      inputs: readRefKeys(drafts).map(({ name }) => name),
      required: readRequiredNames(document["metadata"]),
    }),
    ...checkGraph(drafts, usesOf),
    ...checkBlueprintVariables([...usesOf.values()].flat(), readNames(document, drafts)),
  ];
}

function checkSlots(
  credentials: Json | undefined,
  strategies: ReadonlyMap<string, SlotStrategy>,
): readonly ConfigFinding[] {
  if (!isJsonObject(credentials)) return [];
  return Object.entries(credentials).flatMap(([slot, value]) => {
    const id = isJsonObject(value) ? value["strategy"] : undefined;
    if (typeof id !== "string" || strategies.has(id)) return [];
    const message = `the account has no strategy ${quote(id)}${suggestion(id, strategies.keys(), "there are")}`;
    return [
      {
        path: ["credentials", slot, "strategy"],
        message: strategies.size > 0 ? message : `${message}; add its document`,
      },
    ];
  });
}

/** Names that a trigger's body may have: none may collide with another (docs/decisions/0030). */
function checkTriggerKeys(document: JsonObject, drafts: readonly DraftNode[]): readonly ConfigFinding[] {
  const metadata = readMetadataNames(document["metadata"]);
  const refKeys = readRefKeys(drafts);
  const isReserved = ({ name }: { readonly name: string }) => RESERVED_TRIGGER_KEYS.includes(name);
  const metadataNames = new Set(metadata.map(({ name }) => name));
  return [
    ...[...metadata, ...refKeys].filter(isReserved).map(({ name, path }) => ({
      path,
      message: `${quote(name)} is a reserved key of the trigger; choose another name`,
    })),
    ...checkUnique(
      metadata,
      (name) => `another metadata item has the name ${quote(name)} already; choose another one`,
    ),
    ...checkUnique(
      refKeys,
      (name) => `another input has the refKey ${quote(name)} already; choose another one`,
    ),
    ...refKeys
      .filter(({ name }) => metadataNames.has(name))
      .map(({ name, path }) => ({
        path,
        message: `a metadata item has the name ${quote(name)} already; choose another refKey`,
      })),
  ];
}

type Named = readonly { readonly name: string; readonly path: ConfigPath }[];

function readMetadataNames(metadata: Json | undefined): Named {
  return (Array.isArray(metadata) ? metadata : []).flatMap((item: Json, index: number) =>
    isJsonObject(item) && typeof item["name"] === "string"
      ? [{ name: item["name"], path: ["metadata", index, "name"] }]
      : [],
  );
}

const readRequiredNames = (metadata: Json | undefined): readonly string[] =>
  (Array.isArray(metadata) ? metadata : []).flatMap((item: Json) =>
    isJsonObject(item) && item["required"] === true && typeof item["name"] === "string" ? [item["name"]] : [],
  );

function readRefKeys(drafts: readonly DraftNode[]): Named {
  return drafts.flatMap(({ type, config, path }) =>
    type === "input" && typeof config["refKey"] === "string"
      ? [{ name: config["refKey"], path: [...path, "refKey"] }]
      : [],
  );
}

function readNames(document: JsonObject, drafts: readonly DraftNode[]): BlueprintNames {
  return {
    inputs: new Set(readRefKeys(drafts).map(({ name }) => name)),
    metadata: new Set(readMetadataNames(document["metadata"]).map(({ name }) => name)),
    nodes: new Map(drafts.flatMap(({ id, gives }) => (id === null ? [] : [[id, gives] as const]))),
  };
}

/** The slot that a node names, and where its requests go. */
function checkCredential(
  draft: DraftNode,
  document: JsonObject,
  strategies: ReadonlyMap<string, SlotStrategy>,
): readonly ConfigFinding[] {
  const { nodeType, value, path } = draft;
  const slot = value["credential"];
  const slots = isJsonObject(document["credentials"]) ? document["credentials"] : {};
  const at = [...path, "credential"];
  const isKnown = typeof slot === "string" && Object.hasOwn(slots, slot);
  const unknown =
    typeof slot === "string" && !isKnown
      ? [{ path: at, message: explainSlot(slot, Object.keys(slots)) }]
      : [];
  if (nodeType === null) return unknown;
  if (!nodeType.usesCredential) {
    return slot === undefined
      ? []
      : [
          {
            path: at,
            at: "key",
            message: `a node of type ${quote(nodeType.type)} uses no credential; remove it`,
          },
        ];
  }
  const urls = [...findRequestUrls(value, path), ...findGotoUrls(value, path)];
  if (slot === undefined) return checkPublicUrls(urls, readOrigins(document["hosts"]));
  const filled = isKnown ? slots[slot] : undefined;
  const id = isJsonObject(filled) && typeof filled["strategy"] === "string" ? filled["strategy"] : undefined;
  const hosts = id === undefined ? undefined : strategies.get(id)?.hosts;
  return [...unknown, ...(hosts ? checkCredentialUrls(urls, hosts, `the strategy ${quote(id ?? "")}`) : [])];
}

function explainSlot(slot: string, slots: readonly string[]): string {
  if (slots.length === 0) return `there is no credential slot ${quote(slot)}; add it under \`credentials\``;
  return `there is no credential slot ${quote(slot)}${suggestion(slot, slots, "there are")}`;
}
