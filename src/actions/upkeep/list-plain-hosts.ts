import { listAppliedDocuments } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import type { JsonObject } from "#domain/json.ts";
import { plainHosts } from "#actions/config/check-plain-hosts.ts";

export interface PlainHosts {
  readonly kind: string;
  readonly account: string;
  readonly id: string;
  readonly hosts: readonly string[];
  /** Whether the document acknowledges it. */
  readonly insecure: boolean;
}

/** Strategies and Blueprints in force that send over the internet without TLS. */
export async function listPlainHosts(db: Database): Promise<readonly PlainHosts[]> {
  return (await listAppliedDocuments(db)).flatMap(({ kind, account, id, document }) => {
    if (kind === "account") return [];
    const stored = JSON.parse(document) as JsonObject;
    const hosts = plainHosts(stored);
    if (hosts.length === 0 || stored["retired"] === true) return [];
    return [{ kind, account, id, hosts, insecure: stored["insecure"] === true }];
  });
}

/** A sentence that describes the problem and its remedy. */
export function describePlain({ kind, account, id, hosts, insecure }: PlainHosts): string {
  const noun = kind === "blueprint" ? "Blueprint" : kind;
  const remedy = insecure
    ? "Its document says `insecure: true`; use https:// as soon as the target has it"
    : "It keeps working; use https://, or put `insecure: true` into the document, which `apply` now requires";
  return `the ${noun} ${account}/${id} sends without encryption over public networks (${hosts.join(", ")}). ${remedy}`;
}
