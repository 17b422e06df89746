import { NodeFailure } from "#nodes/define-node.ts";

/** The limit of spreadsheets. */
const COLUMNS_MAX = 16_384;

/** The column names of a header: trimmed, an empty one becomes `column_<n>`. Throws NodeFailure if two are the same. */
export function columnNames(header: readonly string[], place: string): readonly string[] {
  if (header.length > COLUMNS_MAX)
    throw new NodeFailure(`${place}: there are more than ${COLUMNS_MAX} columns.`);
  const names = header.map((name, index) => name.trim() || `column_${index + 1}`);
  const seen = new Set<string>();
  const repeated = names.findIndex((name) => seen.size === seen.add(name).size);
  if (repeated === -1) return names;
  const first = names.indexOf(names[repeated] ?? "");
  throw new NodeFailure(
    `${place}: the columns ${first + 1} and ${repeated + 1} have the same name, so one would hide the other.`,
  );
}
