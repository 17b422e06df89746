import { startTarget, type Target } from "../flow/target.ts";

/** A target whose `/items` wants this token, and has one item. */
export async function startTokenPortal(token: string): Promise<Target> {
  return await startTarget(({ headers }) =>
    headers.authorization === `Bearer ${token}` ? { body: { items: [{ id: "1" }] } } : { status: 401 },
  );
}

/** The account `acme` with `strat_portal`, whose field is the token, and the Blueprint `read`. `login` and `blueprint`: more of their keys. */
export const portalDocuments = (
  url: string,
  { login = "", blueprint = "" }: { readonly login?: string; readonly blueprint?: string } = {},
): readonly string[] => [
  "account: acme",
  `strategy: strat_portal
account: acme
hosts: [${url}]
fields:
  - { key: token, label: Token, type: password, required: true }
login: { type: bearer, token: token${login} }`,
  `blueprint: read
account: acme
${blueprint}
credentials: { portal: { strategy: strat_portal } }
nodes:
  - { id: items, type: http, credential: portal, request: { method: GET, url: /items }, records: items }
  - { id: out, type: output, refKey: items, from: items }`,
];
