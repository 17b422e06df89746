import { listAppliedDocuments } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { nodeTypes } from "#nodes/registry.ts";

export interface MissingType {
  readonly account: string;
  readonly blueprint: string;
  readonly nodeId: string;
  readonly type: string;
}

/** Nodes of current Blueprints whose type is unknown to this process: their runs would fail here. */
export async function listMissingTypes(db: Database): Promise<readonly MissingType[]> {
  const documents = await listAppliedDocuments(db);
  return documents
    .filter(({ kind }) => kind === "blueprint")
    .flatMap(({ account, id, document }) => {
      const { retired, nodes } = JSON.parse(document) as StoredBlueprint;
      if (retired === true) return [];
      return nodes
        .filter(({ type }) => !nodeTypes.has(type))
        .map((node) => ({ account, blueprint: id, nodeId: node.id, type: node.type }));
    });
}

interface StoredBlueprint {
  readonly retired?: boolean;
  readonly nodes: readonly { readonly id: string; readonly type: string }[];
}

/** A sentence that describes the problem and its remedy. */
export const describeMissingType = ({ account, blueprint, nodeId, type }: MissingType): string =>
  `node type ${type}: the node ${nodeId} of the Blueprint ${account}/${blueprint} uses it, but this process does not have it. Name its file ` +
  "in LATCHKEY_NODE_FILES, here and in the environment of every serve process";
