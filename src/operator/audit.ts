import * as look from "#actions/operators/list-audit-entries.ts";
import type * as contract from "#contract/operator/audit.ts";
import type { Handler } from "./context.ts";

export const getAudit: Handler<typeof contract.listAudit> = async ({ services, limit }, { query }) =>
  await look.listAuditEntries(services.db, query, limit);

export const getChains: Handler<typeof contract.listAuditChains> = async ({ services, limit }) => ({
  items: await look.listAuditChains(services.db, limit),
});

export const getVerified: Handler<typeof contract.verifyAuditChain> = async (
  { services },
  { params, query },
) => await look.verifyNextPart(services, params["chain"] ?? "", query.after);

export const getExport: Handler<typeof contract.exportAudit> = async ({ services, reply }, { query }) => {
  const { account = null, since } = query;
  reply.header("Content-Disposition", 'attachment; filename="latchkey-audit.ndjson"');
  return await look.exportEntries(services, {
    account,
    since: since === undefined ? null : new Date(since).toISOString(),
  });
};
