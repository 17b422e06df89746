/** Rows as parameters of one statement: an array for each column. */

/** The columns of a row, each with its type and the function that reads its value. */
export type Columns<Row> = Readonly<Record<string, readonly [type: string, value: (row: Row) => unknown]>>;

/** A `from` item with the rows, whose parameters begin at `$first`. */
export const given = <Row>(name: string, columns: Columns<Row>, first: number): string =>
  `unnest(${Object.values(columns)
    .map(([type], at) => `$${first + at}::${type}[]`)
    .join(", ")}) as ${name} (${namesOf(columns)})`;

export const namesOf = <Row>(columns: Columns<Row>): string => Object.keys(columns).join(", ");

export const valuesOf = <Row>(columns: Columns<Row>, rows: readonly Row[]): readonly unknown[][] =>
  Object.values(columns).map(([, value]) => rows.map(value));
