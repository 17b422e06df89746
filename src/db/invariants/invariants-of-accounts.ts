import type { RowCheck } from "./row-check.ts";

/** A row (`child`) and one that it belongs to (`parent`). */
interface Belonging {
  readonly child: string;
  readonly parent: string;
  /** How the child names its parent. */
  readonly on: string;
  /** The child's ids. */
  readonly ids: readonly string[];
  /** Columns that must agree in addition to the account. */
  readonly also?: string;
  /** The parent may have been deleted, or another check covers it. */
  readonly isOptional?: true;
}

const ofRun = (child: string, ...ids: readonly string[]): Belonging => ({
  child,
  parent: "run",
  on: "parent.id = child.run_id",
  ids: ["run_id", ...ids],
});

const object = (child: string, column: string, ...ids: readonly string[]): Belonging => ({
  child,
  parent: "blob",
  on: `parent.key = child.${column}`,
  ids: ["run_id", ...ids],
  also: "run_id",
});

const ofCredential = (child: string): Belonging => ({
  child,
  parent: "credential",
  on: "parent.id = child.credential_id",
  ids: ["credential_id"],
  isOptional: true,
});

const BELONGINGS: readonly Belonging[] = [
  ofRun("run_step", "node_id"),
  ofRun("run_write", "node_id", "ordinal"),
  ofRun("run_poll", "node_id", "ordinal"),
  ofRun("run_turn", "node_id", "ordinal"),
  ofRun("run_input", "ref_key"),
  ofRun("run_result", "ordinal"),
  ofRun("run_credential", "slot"),
  ofRun("blob", "key"),
  ofRun("review", "id"),
  ofRun("audit_entry", "id"),
  object("run_step", "blob_key", "node_id"),
  object("run_step", "source_blob_key", "node_id"),
  object("run_turn", "blob_key", "node_id", "ordinal"),
  object("run_input", "blob_key", "ref_key"),
  object("run_result", "blob_key", "ordinal"),
  ofCredential("login_session"),
  ofCredential("oauth_token"),
  { ...ofCredential("run_credential"), ids: ["run_id", "slot"] },
  { child: "run", parent: "api_key", on: "parent.id = child.api_key_id", ids: ["id"] },
  { child: "run", parent: "run", on: "parent.id = child.again_of", ids: ["id"] },
  { child: "run", parent: "blueprint", on: "parent.id = child.blueprint_id", ids: ["id"] },
  {
    child: "credential",
    parent: "credential_session",
    on: "parent.id = child.session_id",
    ids: ["id"],
    isOptional: true,
  },
  {
    child: "credential_session",
    parent: "embedded_credential_session",
    on: "parent.id = child.embedded_session_id",
    ids: ["id"],
  },
  {
    child: "oauth_attempt",
    parent: "credential_session",
    on: "parent.id = child.session_id",
    ids: ["session_id"],
  },
  {
    child: "review_change",
    parent: "review",
    on: "parent.id = child.review_id",
    ids: ["review_id", "ordinal"],
  },
  {
    child: "throttle_slot",
    parent: "blueprint",
    // Of a host: any Blueprint of the account will do.
    on: "parent.id = child.blueprint_id or child.blueprint_id = child.account_id and parent.account_id = child.account_id",
    ids: ["blueprint_id", "node_id"],
  },
];

function belongingCheck({ child, parent, on, ids, also, isOptional }: Belonging): RowCheck {
  const column = /child\.(\w+)/.exec(on)?.[1] ?? "";
  const differs = ["account_id", ...(also === undefined ? [] : [also])].map(
    (each) => `parent.${each} is distinct from child.${each}`,
  );
  return {
    invariant: "V15",
    name: `account_${child}_${column}`,
    problem: `it and its ${parent.replaceAll("_", " ")} do not belong together`,
    remedy:
      "stop the service: one account may see another's data. Restore a backup, and report this line as a defect",
    find: `select '${child} ' || concat_ws(' ', ${ids.map((id) => `child.${id}`).join(", ")}) as place
      from ${child} child ${isOptional ? "" : "left "}join ${parent} parent on ${on}
      where child.${column} is not null and (${differs.join(" or ")})`,
  };
}

/** Invariant V15, for every row that refers to another. Foreign keys ensure it but for journals, and a restore may have been made without them. */
export const ACCOUNT_CHECKS: readonly RowCheck[] = BELONGINGS.map(belongingCheck);
