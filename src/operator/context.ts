import type { FastifyReply, FastifyRequest } from "fastify";
import type { OperatorCaller, Principal } from "#actions/operators/operator-caller.ts";
import type { Services } from "#actions/services.ts";
import type { OperatorAnswer, OperatorInput, OperatorOperation } from "#contract/operator/operation.ts";
import type { Brand } from "#domain/branding.ts";
import type { Language } from "#domain/language.ts";
import type { PersonalPermission } from "#domain/operator.ts";
import type { Strategy } from "#domain/strategy.ts";
import type { JsonTree } from "#lib/json-text.ts";
import type { Log } from "#lib/log.ts";

/** What the server provides for every API: the error envelope and the body reader. */
export interface SharedHttp {
  renderProblem(log: Log, reply: FastifyReply, error: unknown): FastifyReply;
  readJsonObject(
    request: FastifyRequest,
    /** `sender`: null if no one is signed in. */
    limit: { readonly bytesMax: number; readonly sender: string | null },
  ): Promise<ReadonlyMap<string, JsonTree>>;
  /** The hosted page of a strategy, as HTML. */
  renderFormPreview: (services: Services, preview: FormPreview) => string;
}

/** What a preview shows. */
export interface FormPreview {
  readonly strategy: Strategy;
  readonly brand: Brand;
  readonly language: Language;
  readonly scheme: "light" | "dark";
}

/** The context of a handler that needs no sign-in. */
export interface OpenContext {
  readonly services: Services;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export interface Context extends OpenContext {
  readonly caller: Principal;
  /** The ids of the accounts that the caller is limited to; null: all accounts. */
  readonly limit: readonly string[] | null;
}

/** The context of a handler whose permission no operator token has. */
export interface PersonalContext extends OpenContext {
  readonly caller: OperatorCaller;
  readonly limit: readonly string[] | null;
  /** The value of the session's cookie. */
  readonly token: string;
}

export type ContextOf<O extends OperatorOperation> = O["permission"] extends PersonalPermission
  ? PersonalContext
  : Context;

/** Its types come from its operation; the return value is the answer. */
export type Handler<O extends OperatorOperation, C extends OpenContext = ContextOf<O>> = (
  context: C,
  input: OperatorInput<O>,
) => Promise<OperatorAnswer<O>>;
