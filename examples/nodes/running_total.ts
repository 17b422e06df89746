import {
  defineNode,
  EXPRESSION,
  indexedBatches,
  NodeFailure,
  readConfig,
  recordScopes,
  Type,
  valueOf,
  type NodeContext,
  type RecordBatches,
  type Static,
} from "latchkey/node";

const schema = Type.Object(
  {
    of: Type.String({ [EXPRESSION]: "record", description: "The number to add up, of each record." }),
    by: Type.Optional(
      Type.String({ [EXPRESSION]: "record", description: "Adds up apart for each value that it gives." }),
    ),
    as: Type.String({ minLength: 1, description: "The field that carries the total so far." }),
  },
  { additionalProperties: false },
);

/** Adds up a number from record to record: what `map`, which sees one record at a time, can't say. */
export const node = defineNode({
  type: "running_total",
  description: "Adds up a number from record to record.",
  schema,
  run: (context, config) =>
    Promise.resolve({ kind: "records", batches: added(context, readConfig(schema, config)) }),
});

async function* added(context: NodeContext, { of, by, as }: Static<typeof schema>): RecordBatches {
  const totals = new Map<string, number>();
  const sources = by === undefined ? [of] : [of, by];
  for await (const { first, batch } of indexedBatches(context.from)) {
    const outcomes = await context.expressions.evaluateBatch(sources, recordScopes(batch, first));
    yield batch.map((record, index) => {
      const place = `Record ${first + index}`;
      const number = valueOf(outcomes[index]?.[0], `${place}: of`);
      if (typeof number !== "number") throw new NodeFailure(`${place}: of gives no number.`);
      const group = by === undefined ? "" : JSON.stringify(valueOf(outcomes[index]?.[1], `${place}: by`));
      const total = (totals.get(group) ?? 0) + number;
      totals.set(group, total);
      return { ...record, data: { ...record.data, [as]: total } };
    });
  }
}
