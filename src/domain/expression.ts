import type { Json } from "./json.ts";

/** The place of an expression determines its root and its variables (docs/blueprints.md#expressions). */
export type ExpressionScopeKind =
  /** root: nothing; `$inputs $metadata $run $nodes` */
  | "run"
  /** `when`: like `run`, plus `$counts.total|valid|invalid` of the node's `from` */
  | "counts"
  /** root: the record's data; like `run`, plus `$index $isValid $errors` */
  | "record"
  /** root: the response's JSON body; like `run` */
  | "response"
  /** the next page: like `response`, plus `$page` */
  | "page"
  /** a request's templates; the node type's `requestScope` selects one of the next three, `run` or `record` */
  | "request"
  /** like `run`, plus `$token` */
  | "write"
  /** like `record`, plus `$token` */
  | "record-write"
  /** the look-up of a write: root: the response's JSON body; like `run`, plus `$token` */
  | "verify"
  /** in a strategy's `login`: `$credential.<field>`, and the values extracted by earlier steps */
  | "login"
  /** like `login`; root: the response's JSON body */
  | "login-response";

/** A schema annotation: this string is a bare JSONata expression. Read by `apply`'s check. */
export const EXPRESSION = "x-expression";
/** A schema annotation: strings at any depth here may contain `{{ expr }}`. */
export const TEMPLATE = "x-template";

export interface Scope {
  readonly root?: Json | undefined;
  /**
   * Instead of `root`, for the only row of a batch: its JSON text, which is parsed where the expression is evaluated. Within the bounds of
   * `read-json.ts`. Text that is not JSON rejects with NotJson.
   */
  readonly rootText?: string | undefined;
  readonly variables?: { readonly [name: string]: Json } | undefined;
}

export type Outcome =
  | { readonly ok: true; readonly value: Json | undefined }
  | {
      readonly ok: false;
      readonly message: string;
      /** It exceeded its time or memory, so the rest of the batch was not evaluated: the caller must fail. */
      readonly isExhausted?: true;
    };

/** Evaluates expressions with some variables already bound (those of a run, or of a login), off the main thread. */
export interface BoundExpressions {
  /** A bare expression. Throws ExpressionError. `undefined` = the expression has no value. */
  evaluate(source: string, scope?: Scope): Promise<Json | undefined>;
  /**
   * A template: strings at any depth may contain `{{ expr }}`. A string that is exactly one `{{ expr }}` keeps the value's type;
   * a key whose template has no value is left out; inside a longer string, no value is the empty string. Throws ExpressionError.
   */
  render(template: Json, scope?: Scope): Promise<Json | undefined>;
  /** Several expressions for each row of a batch, in one call to the thread: `result[row][expression]`. Never throws for a row. */
  evaluateBatch(sources: readonly string[], rows: readonly Scope[]): Promise<readonly (readonly Outcome[])[]>;
}

/** The input of an expression is not JSON. */
export class NotJson extends Error {
  override readonly name = "NotJson";
  constructor() {
    super("is not JSON");
  }
}

/** The evaluation of an expression failed. The message contains the expression and the reason, never a secret. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
  readonly source: string;

  constructor(source: string, reason: string) {
    super(`expression \`${source.length > 200 ? `${source.slice(0, 200)}…` : source}\`: ${reason}`);
    this.source = source;
  }
}
