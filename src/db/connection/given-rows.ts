/** Rows as parameters of one statement: an array for each column. */

/** What a statement is given of each row: by column, its type and its value. */
export type Columns<Row> = Readonly<Record<string, readonly [type: string, value: (row: Row) => unknown]>>;

/** The types as parameters from `$first` on, and the names. */
export const given = <Row>(name: string, columns: Columns<Row>, first: number): string =>
  `unnest(${Object.values(columns)
    .map(([type], at) => `$${first + at}::${type}[]`)
    .join(", ")}) as ${name} (${namesOf(columns)})`;

export const namesOf = <Row>(columns: Columns<Row>): string => Object.keys(columns).join(", ");

export const valuesOf = <Row>(columns: Columns<Row>, rows: readonly Row[]): readonly unknown[][] =>
  Object.values(columns).map(([, value]) => rows.map(value));
