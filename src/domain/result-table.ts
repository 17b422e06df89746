import { NumberText, writeJsonText, type JsonTree } from "#lib/json-text.ts";

/** null: an empty cell. A number keeps the digits of the record. */
export type Cell = string | boolean | NumberText | null;

type Fields = ReadonlyMap<string, JsonTree>;

/** The columns of a table of records: the keys of all data in the order of first occurrence, and two columns of the service. */
export interface TableColumns {
  readonly fields: readonly string[];
  readonly headings: readonly string[];
}

export function tableColumns(fields: ReadonlySet<string>): TableColumns {
  // Names from the data are never changed.
  const free = (name: string): string => (fields.has(name) ? free(`_${name}`) : name);
  return { fields: [...fields], headings: [...fields, free("is_valid"), free("errors")] };
}

/** The keys of a record's data. */
export function fieldsOf(record: JsonTree): Iterable<string> {
  return dataOf(record).keys();
}

/** An object or a list is one cell with its JSON: nothing is lost, and column names cannot collide. */
export function cellsOf(record: JsonTree, { fields }: TableColumns): readonly Cell[] {
  const data = dataOf(record);
  const isValid = asMap(record).get("isValid") === true;
  return [
    ...fields.map((field) => cellOf(data.get(field))),
    isValid,
    errorsText(asMap(record).get("errors")),
  ];
}

function cellOf(value: JsonTree | undefined): Cell {
  if (value === undefined) return null;
  const isLeaf =
    value === null || typeof value === "string" || typeof value === "boolean" || value instanceof NumberText;
  return isLeaf ? value : writeJsonText(value);
}

/** `field: message` for each error; nothing for a record without errors. */
function errorsText(errors: JsonTree | undefined): string | null {
  if (!Array.isArray(errors) || errors.length === 0) return null;
  return (errors as readonly JsonTree[]).map(errorText).join("; ");
}

function errorText(error: JsonTree): string {
  const [field, message] = [asMap(error).get("field"), asMap(error).get("message")];
  const text = typeof message === "string" ? message : "";
  return typeof field === "string" ? `${field}: ${text}` : text;
}

const dataOf = (record: JsonTree): Fields => asMap(asMap(record).get("data"));

const asMap = (value: JsonTree | undefined): Fields =>
  value instanceof Map ? (value as Fields) : (new Map() as Fields);
