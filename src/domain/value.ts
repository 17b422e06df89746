import type { Json } from "./json.ts";

/** The output of an `input` or of a request without records: one value, not a record set. */
export type Value =
  | { readonly form: "absent" }
  | { readonly form: "text"; readonly text: string }
  | { readonly form: "json"; readonly json: Json }
  | FileValue;

export interface FileValue {
  readonly form: "file";
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly sizeBytes: number;
  /** Opens a new stream at each call. */
  readonly open: () => AsyncIterable<Uint8Array>;
}
