import type { FastifyReply, FastifyRequest } from "fastify";
import type { OperatorCaller } from "#actions/operators/operator-caller.ts";
import type { Services } from "#actions/services.ts";
import type { OperatorAnswer, OperatorInput, OperatorOperation } from "#contract/operator/operation.ts";
import type { JsonTree } from "#lib/json-text.ts";
import type { Log } from "#lib/log.ts";

/** What the server has for every API: the one envelope, and the one reader of bodies. */
export interface SharedHttp {
  renderProblem(log: Log, reply: FastifyReply, error: unknown): FastifyReply;
  readJsonObject(
    request: FastifyRequest,
    /** `sender`: null before anybody is signed in. */
    limit: { readonly bytesMax: number; readonly sender: string | null },
  ): Promise<ReadonlyMap<string, JsonTree>>;
}

/** What a handler works with before anybody is signed in. */
export interface OpenContext {
  readonly services: Services;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export interface Context extends OpenContext {
  readonly caller: OperatorCaller;
  /** What the browser holds of the session. */
  readonly token: string;
}

/** Its types are those of its operation; there is nothing to send but what it gives back. */
export type Handler<O extends OperatorOperation, C extends OpenContext = Context> = (
  context: C,
  input: OperatorInput<O>,
) => Promise<OperatorAnswer<O>>;
