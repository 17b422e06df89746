import type { Json } from "./json.ts";

/** Where an expression stands decides its root and the variables it sees (docs/blueprints.md#expressions). */
export type ExpressionScopeKind =
  /** root: nothing; `$inputs $metadata $run $nodes` */
  | "run"
  /** `when`: as `run`, and `$counts.total|valid|invalid` of the node's `from` */
  | "counts"
  /** root: the record's data; as `run`, and `$index $isValid $errors` */
  | "record"
  /** root: the response's JSON body; as `run` */
  | "response"
  /** how the pages go on: as `response`, and `$page` */
  | "page"
  /** a request's templates; which of the next three (or `run`, `record`) it is, the node type says by `requestScope` */
  | "request"
  /** as `run`, and `$token` */
  | "write"
  /** as `record`, and `$token` */
  | "record-write"
  /** the look-up of a write: root: the response's JSON body; as `run`, and `$token` */
  | "verify"
  /** in a strategy's `login`: `$credential.<field>`, and what earlier steps extracted */
  | "login"
  /** as `login`; root: the response's JSON body */
  | "login-response";

/** A schema annotation that says: this string is a bare JSONata expression. Read by `apply`'s check. */
export const EXPRESSION = "x-expression";
/** A schema annotation that says: strings at any depth here may hold `{{ expr }}`. */
export const TEMPLATE = "x-template";

export interface Scope {
  readonly root?: Json | undefined;
  /**
   * Instead of `root`, for the only row of a batch: its JSON text, which is parsed where the expression is evaluated. Within the bounds of
   * `read-json.ts`. Text that is not JSON rejects with NoJson.
   */
  readonly rootText?: string | undefined;
  readonly variables?: { readonly [name: string]: Json } | undefined;
}

export type Outcome =
  | { readonly ok: true; readonly value: Json | undefined }
  | {
      readonly ok: false;
      readonly message: string;
      /** It used up its time or its memory, so nothing after it in the batch was tried: the caller must fail. */
      readonly isExhausted?: true;
    };

/** Expressions with some variables already bound (those of a run, or of a login). Evaluated off the main thread. */
export interface BoundExpressions {
  /** A bare expression. Throws ExpressionError. `undefined` = the expression gives nothing. */
  evaluate(source: string, scope?: Scope): Promise<Json | undefined>;
  /**
   * A template: strings at any depth may hold `{{ expr }}`; a string that is exactly one `{{ expr }}` keeps the value's type;
   * a key whose template gives nothing is left out; inside a longer string nothing is empty. Throws ExpressionError.
   */
  render(template: Json, scope?: Scope): Promise<Json | undefined>;
  /** Several expressions for each row of a batch, in one hop to the thread: `result[row][expression]`. Never throws for a row. */
  evaluateBatch(sources: readonly string[], rows: readonly Scope[]): Promise<readonly (readonly Outcome[])[]>;
}

/** What an expression was to be evaluated on is not JSON. */
export class NoJson extends Error {
  override readonly name = "NoJson";
  constructor() {
    super("is not JSON");
  }
}

/** An expression failed while it was evaluated. The message says the expression and why, and never a secret. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
  readonly source: string;

  constructor(source: string, reason: string) {
    super(`expression \`${source.length > 200 ? `${source.slice(0, 200)}…` : source}\`: ${reason}`);
    this.source = source;
  }
}
