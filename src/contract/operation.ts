import type { TSchema } from "typebox";
import type { ErrorBody } from "./error.ts";

/** A header, query or path parameter. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: TSchema;
  readonly example?: string | number | undefined;
}

export type ResponseHeader =
  | "X-Request-Id"
  | "Cache-Control"
  | "Idempotent-Replay"
  | "Ignored-Keys"
  | "Preference-Applied"
  | "RateLimit"
  | "RateLimit-Policy"
  | "Retry-After"
  | "WWW-Authenticate"
  | "X-Accel-Buffering";

/** One body, in one encoding. */
export interface Media {
  readonly schema: TSchema;
  /** By name; each is valid against the schema. */
  readonly examples: Readonly<Record<string, unknown>>;
}

/** A body of JSON, as the content of a request or an answer. */
export const json = (schema: TSchema, examples: Media["examples"]) => ({
  "application/json": { schema, examples },
});

export interface Answer {
  readonly status: number;
  readonly description: string;
  /** In addition to those that every response has. */
  readonly headers?: readonly ResponseHeader[] | undefined;
  /** By content type; undefined: the body is empty. */
  readonly content?: Readonly<Record<string, Media>> | undefined;
}

export interface Failure {
  /** `default`: refused before an operation was found, with any status. */
  readonly status: number | "default";
  readonly description: string;
  readonly headers?: readonly ResponseHeader[] | undefined;
  readonly examples: Readonly<Record<string, ErrorBody>>;
}

/** One operation of the service, with everything that a caller can see of it. */
export interface Operation {
  /** Unique; used as the method's name in generated clients. */
  readonly id: string;
  readonly method: "get" | "post" | "put" | "delete";
  /** Relative to the base URL, parameters in braces. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  /** Paragraphs separated by a blank line, `- ` lists, and code in backticks: no other Markdown. */
  readonly description: string;
  readonly parameters: readonly Parameter[];
  readonly body?:
    | { readonly required: boolean; readonly content: Readonly<Record<string, Media>> }
    | undefined;
  readonly answers: readonly Answer[];
  /** The operation's own failures. Those of every operation under the base URL are `COMMON_FAILURES`. */
  readonly failures: readonly Failure[];
  /** Commands by label. They work in a shell in which BASE_URL, API_KEY and the ids in them are set. */
  readonly curl: Readonly<Record<string, string>>;
  /** true: outside `/api/v1`, without authentication. */
  readonly isOpen?: boolean | undefined;
}
