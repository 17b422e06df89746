import type { PlannedDocument } from "#actions/config/apply-config.ts";
import type { ExportedDocument } from "#actions/config/export-config.ts";
import type { applyConfig } from "#contract/operator/config.ts";
import type { OperatorAnswer } from "#contract/operator/operation.ts";
import type { Json } from "#domain/json.ts";
import { describePlan, printPlan, refusal } from "./print-plan.ts";
import type { Composition } from "./composition.ts";
import { print, tell } from "./output.ts";
import { proposedInstead } from "./proposed.ts";
import { readSources } from "./read-sources.ts";
import { onRemote } from "./remote.ts";

const FILE_CHARACTERS_MAX = 200;

/** The service checks documents itself, with its own accounts and node types. */
const documentsOf = (paths: readonly string[]) =>
  readSources(paths).map(({ file, text }) => ({ file: file.slice(-FILE_CHARACTERS_MAX), text }));

/** `latchkey plan` on the service of another machine. */
export async function planRemotely(
  composition: Composition,
  { file, json }: { readonly file: readonly string[]; readonly json?: boolean },
): Promise<void> {
  const documents = documentsOf(file);
  const { planConfig } = await import("#contract/operator/config.ts");
  const plan = await onRemote(
    composition,
    async (service) => await service.call(planConfig, { body: { documents } }),
  );
  if (plan.base === null) throw refusal(plan.problems);
  printPlan(
    { changes: plan.changes.map(toPlanned), warnings: plan.warnings, needs: plan.needs, base: plan.base },
    json === true,
  );
}

export interface ApplyOptions {
  readonly file: string[];
  readonly base?: string;
  readonly json?: boolean;
  readonly yes?: boolean;
}

type Answered = OperatorAnswer<typeof applyConfig>["changes"][number];

/** The service writes the values of differences as JSON. */
const toPlanned = ({ differences, ...change }: Answered): PlannedDocument => ({
  ...change,
  differences: differences.map(({ path, before, after }) => ({ path, ...parsed({ before, after }) })),
});

/** The sides of a difference that are there. */
function parsed(sides: { readonly before: string | null; readonly after: string | null }): {
  readonly before?: Json;
  readonly after?: Json;
} {
  const { before, after } = sides;
  return {
    ...(before === null ? {} : { before: JSON.parse(before) as Json }),
    ...(after === null ? {} : { after: JSON.parse(after) as Json }),
  };
}

/** `latchkey apply` on the service of another machine. */
export async function applyRemotely(
  composition: Composition,
  { file, base, json }: ApplyOptions,
): Promise<void> {
  const documents = documentsOf(file);
  const contract = await import("#contract/operator/config.ts");
  await onRemote(composition, async (service) => {
    const body = { documents, ...(base === undefined ? {} : { base }) };
    const { proposal, warnings, ...applied } = await service.call(contract.applyConfig, { body });
    const changes = applied.changes.map(toPlanned);
    for (const warning of warnings) tell(`warning: ${warning}`);
    if (proposal !== null) {
      const { id, reasons, confirmations_wanted: confirmationsWanted } = proposal;
      const proposed = { id, reasons, confirmationsWanted, expiresAt: new Date(proposal.expires_at) };
      if (json === true) print(JSON.stringify({ changes: [], proposal: proposed }));
      throw proposedInstead(service.url, proposed);
    }
    print(json === true ? JSON.stringify({ changes }) : describePlan(changes));
  });
}

/** `latchkey export` of the service of another machine. */
export async function exportRemotely(
  composition: Composition,
  account: string | undefined,
): Promise<readonly ExportedDocument[]> {
  const { exportConfig } = await import("#contract/operator/config.ts");
  const query = account === undefined ? {} : { account };
  return (await onRemote(composition, async (service) => await service.call(exportConfig, { query }))).items;
}
