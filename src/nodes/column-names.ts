import { NodeFailure } from "./define-node.ts";

/** The names of a header: trimmed, an empty one is `column_<n>`. Throws NodeFailure where two are the same. */
export function columnNames(header: readonly string[], place: string): readonly string[] {
  const names = header.map((name, index) => name.trim() || `column_${index + 1}`);
  const repeated = names.findIndex((name, index) => names.indexOf(name) !== index);
  if (repeated === -1) return names;
  const first = names.indexOf(names[repeated] ?? "");
  throw new NodeFailure(
    `${place}: the columns ${first + 1} and ${repeated + 1} have the same name, so one would hide the other.`,
  );
}
