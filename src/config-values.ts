/** One setting. The documentation page is generated from this table. */
export interface Setting {
  readonly name: string;
  readonly type: string;
  readonly default: string;
  readonly description: string;
}

/** Reads one setting: its value, or the fallback; what can't be read is a problem that says what it must be. */
export type Checked = <T>(
  name: string,
  parse: (text: string) => T | undefined,
  wants: string,
  fallback: T,
) => T;

export const oneOf =
  <T extends string>(names: readonly T[]) =>
  (text: string) =>
    names.find((name) => name === text);

/** Without a trailing slash. */
export function readPlainUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const plain = !url.search && !url.hash && !url.username && !url.password;
  return plain && /^https?:$/.test(url.protocol) ? text.replace(/\/+$/, "") : undefined;
}
