/**
 * The scopes of an API key: `runs`: trigger, read and cancel runs, and read the schemas of triggers; `sessions`: create and read credential
 * sessions, embedded ones too; `credentials:delete`; `events`: read the stream of the account's events.
 */
export const KEY_SCOPES = ["runs", "sessions", "credentials:delete", "events"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/** The default scopes of a new key: a key that is limited to Blueprints is for their runs. */
export function defaultScopes(blueprintKeys: readonly string[] | null): readonly KeyScope[] {
  return blueprintKeys === null ? KEY_SCOPES : ["runs"];
}

/** The message to the caller. */
export function lacksScopeText(scope: KeyScope): string {
  return (
    `The API key lacks the scope \`${scope}\`. Use a key that has it; the operator of the service creates one with ` +
    `\`latchkey keys create --scope ${scope}\`, or in the dashboard.`
  );
}

/** The scopes in the order of the table, without duplicates. Undefined: one is unknown, or the list is empty. */
export function readScopes(names: readonly string[]): readonly KeyScope[] | undefined {
  const isKnown = names.every((name) => KEY_SCOPES.some((scope) => scope === name));
  return isKnown && names.length > 0 ? KEY_SCOPES.filter((scope) => names.includes(scope)) : undefined;
}
