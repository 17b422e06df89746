/**
 * What an API key may do: `runs`: trigger, read and cancel runs, and read the schemas of triggers; `sessions`: create and read credential
 * sessions, embedded ones too; `credentials:delete`.
 */
export const KEY_SCOPES = ["runs", "sessions", "credentials:delete"] as const;
export type KeyScope = (typeof KEY_SCOPES)[number];

/** Of a new key, when nothing is said: one that is limited to Blueprints is for their runs. */
export function defaultScopes(blueprintKeys: readonly string[] | null): readonly KeyScope[] {
  return blueprintKeys === null ? KEY_SCOPES : ["runs"];
}

/** What a caller is told. */
export function lacksScopeText(scope: KeyScope): string {
  return (
    `The API key lacks the scope \`${scope}\`. Use a key that has it; the operator of the service creates one with ` +
    `\`latchkey keys create --scope ${scope}\`, or in the dashboard.`
  );
}

/** In the order of the table, each once. Undefined: one of them is none, or there is none. */
export function readScopes(names: readonly string[]): readonly KeyScope[] | undefined {
  const isKnown = names.every((name) => KEY_SCOPES.some((scope) => scope === name));
  return isKnown && names.length > 0 ? KEY_SCOPES.filter((scope) => names.includes(scope)) : undefined;
}
