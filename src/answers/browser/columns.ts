import { isSelector } from "#answers/is-selector.ts";
import { quote, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";

/** Where a field of a row is found. */
export interface Column {
  readonly name: string;
  /** Null: the row itself. */
  readonly css: string | null;
  /** Null: its text. */
  readonly attribute: string | null;
}

/** The same columns as in a `parse` node: `css`, `css@attr`, or `@attr` of the row itself. */
export function readColumns(columns: Readonly<Record<string, string>>): readonly Column[] {
  return Object.entries(columns).map(([name, text]) => {
    const match = /^(.*)@([A-Za-z_:][-A-Za-z0-9_:.]*)$/s.exec(text);
    const css = (match?.[1] ?? text).trim();
    return {
      name,
      css: css === "" || css === ":scope" ? null : css,
      attribute: match?.[2]?.toLowerCase() ?? null,
    };
  });
}

export function columnFindings(
  columns: Readonly<Record<string, string>> | undefined,
  path: ConfigPath,
): readonly ConfigFinding[] {
  return readColumns(columns ?? {}).flatMap(({ name, css }) =>
    css === null || isSelector(css)
      ? []
      : [{ path: [...path, name], message: `${quote(css)} is not a CSS selector` }],
  );
}
