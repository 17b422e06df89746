import type { StreamedBody } from "#domain/http-exchange.ts";
import type { Flow } from "./define-node.ts";

/** The output of a node as a file for a target. */
export interface GivenFile extends StreamedBody {
  readonly filename: string | null;
  readonly contentType: string | null;
}

/** Null: it has none. Text and JSON values count as files, too. */
export function fileOfFlow(flow: Flow): GivenFile | null {
  if (flow.kind === "records" || flow.value.form === "absent") return null;
  const { value } = flow;
  if (value.form === "file") return value;
  const [text, contentType] =
    value.form === "text"
      ? [value.text, "text/plain;charset=utf-8"]
      : [JSON.stringify(value.json), "application/json"];
  const bytes = Buffer.from(text, "utf8");
  return {
    filename: null,
    contentType,
    sizeBytes: bytes.byteLength,
    open: async function* () {
      yield bytes;
    },
  };
}
