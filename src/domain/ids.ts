/** Spec, Identifier prefixes, and those of our own resources (never on the public API). */
export const ID_PREFIX = {
  credential: "cred_",
  credentialSession: "sess_",
  embeddedCredentialSession: "ecs_",
  strategy: "strat_",
  run: "run_",
  blueprint: "bp_",
  account: "acct_",
  apiKey: "key_",
  operator: "op_",
  operatorSession: "ops_",
  operatorToken: "tok_",
  worker: "wrk_",
  auditEntry: "aud_",
  review: "rev_",
  proposal: "prop_",
  webhookEndpoint: "we_",
  webhookSecret: "wsec_",
  webhookEvent: "msg_",
  schedule: "sched_",
} as const;

export type IdKind = keyof typeof ID_PREFIX;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether a string has the form of an id of this service. A malformed id is never looked up: it is 404 (docs/decisions/0011). */
export function isId(kind: IdKind, text: string): boolean {
  const prefix = ID_PREFIX[kind];
  return text.startsWith(prefix) && /^[0-9A-Za-z]{20,40}$/.test(text.slice(prefix.length));
}

/** Spec, Identifier prefixes: wherever a run id is accepted in a path, the `run_key` is accepted too. */
export function readRunReference(
  text: string,
): { readonly id: string } | { readonly runKey: string } | undefined {
  if (isId("run", text)) return { id: text };
  if (UUID.test(text)) return { runKey: text.toLowerCase() };
  return undefined;
}
