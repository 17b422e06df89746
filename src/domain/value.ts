import type { Json } from "./json.ts";

/** What an `input` or a text response gives: one value, not a record set. */
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
  /** Opens the bytes anew at each call. */
  readonly open: () => AsyncIterable<Uint8Array>;
}
