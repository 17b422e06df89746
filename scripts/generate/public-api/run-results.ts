import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { errorExample, notAuthorised, notFound, refusedField } from "#contract/failures.ts";
import { EXAMPLE, keyed, runKey, timestamp } from "#contract/fields.ts";
import { json, type Operation, type Parameter } from "#contract/operation.ts";
import { runId } from "#contract/parameters.ts";

/** An item of a record's `errors`: docs/api.md#results. */
const recordError = Type.Object(
  {
    field: Type.Unsafe<string | null>({
      type: ["string", "null"],
      description: "The field of `data` in dot notation; `null` for the record as a whole.",
      examples: ["due"],
    }),
    code: Type.String({ description: "Machine-readable code of the rule.", examples: ["rule"] }),
    message: Type.String({
      description: "What is wrong, for people.",
      examples: ["Due date is before 2020"],
    }),
  },
  { title: "RecordError", description: "A rule that a record violates." },
);

const record = Type.Object(
  {
    data: keyed<unknown>(Type.Unknown(), "The output fields of the Blueprint."),
    errors: Type.Array(recordError, { description: "Empty when the record is valid." }),
    isValid: Type.Boolean({ description: "Whether the record has no errors." }),
  },
  { title: "ResultRecord", description: "One record of an output." },
);

const resultSet = Type.Object(
  {
    totalRecords: Type.Integer({ minimum: 0, description: "The number of records." }),
    records: Type.Array(record, { description: "All records." }),
  },
  {
    title: "ResultSet",
    description: "The records of one result key; also the content of a presigned download.",
  },
);

const executionMetadata = Type.Object(
  {
    runKey,
    metadata: keyed<string>(Type.String(), "The run's stored metadata: text by name."),
    timings: Type.Object(
      {
        executionBeganAt: timestamp("The run's `started_at`.", "2026-11-21T07:08:10.456Z"),
        executionCompletedAt: timestamp("The run's `ended_at`.", "2026-11-21T07:08:12.789Z"),
      },
      { title: "ExecutionTimings", description: "When the run was executed." },
    ),
  },
  { title: "ExecutionMetadata", description: "Information about the run itself." },
);

const KEYS =
  "by the output node's reference key, or `<node_ref>.<handle_key>` when the node has several output handles.";

const directResults = Type.Object(
  {
    dataDeliveryMethod: Type.Literal("direct", { description: "The method that was used." }),
    results: keyed<Static<typeof resultSet>>(resultSet, `The records, ${KEYS}`),
    executionMetadata,
  },
  { title: "DirectRunResults", description: "Inline results." },
);

const presignedResults = Type.Object(
  {
    dataDeliveryMethod: Type.Literal("presigned_url", { description: "The method that was used." }),
    results: keyed<string>(
      Type.String({ format: "uri", description: "Temporary download URL, valid for two hours." }),
      `Download URLs, ${KEYS}`,
    ),
    executionMetadata,
  },
  { title: "PresignedRunResults", description: "Where the results can be downloaded." },
);

/** Spec, Run results: `dataDeliveryMethod` says which of the two it is. */
const runResults = Type.Unsafe<Static<typeof directResults> | Static<typeof presignedResults>>({
  title: "RunResults",
  description: "The outputs of a completed run, in one of two forms: `dataDeliveryMethod` says which.",
  oneOf: [directResults, presignedResults],
  discriminator: {
    propertyName: "dataDeliveryMethod",
    mapping: {
      direct: "#/components/schemas/DirectRunResults",
      presigned_url: "#/components/schemas/PresignedRunResults",
    },
  },
});

export type RunResultsBody = Static<typeof runResults>;

const aboutRun: Static<typeof executionMetadata> = {
  runKey: EXAMPLE.runKey,
  metadata: { purchase_order: "PO-2026-17" },
  timings: { executionBeganAt: "2026-11-21T07:08:10.456Z", executionCompletedAt: "2026-11-21T07:08:12.789Z" },
};

const direct: RunResultsBody = {
  dataDeliveryMethod: "direct",
  results: {
    invoices: {
      totalRecords: 2,
      records: [
        { data: { number: "NW-2025-00001", total: 1249.5, due: "2026-12-01" }, errors: [], isValid: true },
        {
          data: { number: "NW-2025-00002", total: 80, due: "2019-03-01" },
          errors: [{ field: "due", code: "rule", message: "Due date is before 2020" }],
          isValid: false,
        },
      ],
    },
  },
  executionMetadata: aboutRun,
};

const presigned: RunResultsBody = {
  dataDeliveryMethod: "presigned_url",
  results: {
    invoices: `https://connect.example.com/downloads/ACCOUNT/${EXAMPLE.run}/invoices?expires=1795252092789&signature=SIGNATURE`,
  },
  executionMetadata: aboutRun,
};

const deliveryMethod: Parameter = {
  name: "deliveryMethod",
  in: "query",
  required: false,
  description:
    "How to deliver the results. A `direct` answer of 5 MB or more is delivered as `presigned_url` instead.",
  schema: Type.Unsafe<string>({
    type: "string",
    enum: ["direct", "presigned_url"],
    default: "presigned_url",
  }),
  example: "direct",
};

const PURGED = "The run's data has been purged.";

export const readRunResults: Operation = {
  id: "readRunResults",
  method: "get",
  path: "/blueprint-runs/{runId}/results",
  tag: "Runs",
  summary: "Read a run's results",
  description:
    'Returns the outputs of a completed run: inline (`direct`), or as download URLs that are valid for two hours (`presigned_url`, the default). Check `dataDeliveryMethod` in the answer.\n\nA download is the Brotli-compressed JSON of one result set, `{"totalRecords": n, "records": [...]}`, as `application/octet-stream` without `Content-Encoding`: your client must decompress it. It needs no API key and supports range requests.',
  parameters: [runId, deliveryMethod],
  answers: [
    {
      status: 200,
      description: "The results.",
      content: json(runResults, { direct, presigned_url: presigned }),
    },
  ],
  failures: [
    {
      status: 400,
      description: "The data of the run has been purged.",
      examples: {
        purged: errorExample("validation_error", PURGED, [{ code: "run_data_purged", field: null }]),
      },
    },
    notAuthorised,
    notFound("Run", "The API key's account has no such run."),
    {
      status: 409,
      description: "The run is not `completed`; failed and cancelled runs have no results either.",
      examples: {
        incomplete: errorExample("conflict", "The run is running; results exist once it is completed."),
      },
    },
    {
      status: 422,
      description: "`deliveryMethod` is neither `direct` nor `presigned_url`, or was given twice.",
      examples: {
        delivery_method: refusedField(
          "deliveryMethod",
          "`deliveryMethod` must be direct or presigned_url, given once.",
        ),
      },
    },
  ],
  curl: {
    direct: `curl -sS -G "$BASE_URL/blueprint-runs/$RUN_ID/results" -d deliveryMethod=direct \\
  -H "Authorization: Bearer $API_KEY"`,
    "as downloads": `curl -sS "$BASE_URL/blueprint-runs/$RUN_ID/results" \\
  -H "Authorization: Bearer $API_KEY"`,
  },
};
