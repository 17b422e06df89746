import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { OperatorError } from "#actions/operator-error.ts";
import { cutToAccounts, limitOf } from "#actions/operators/account-limit.ts";
import { holderOf } from "#actions/operators/operator-caller.ts";
import type { Services } from "#actions/services.ts";
import type { OperatorOperation } from "#contract/operator/operation.ts";
import { Problem } from "#domain/problem.ts";
import type { ContextOf, Handler, OpenContext, SharedHttp } from "./context.ts";
import { enter, enterOpen } from "./enter.ts";
import { readInput } from "./read-input.ts";

/** Adds routes of operations to an instance: each authenticates, authorises, and reads the input, and then calls the handler. */
export function routeAdder(api: FastifyInstance, services: Services, http: SharedHttp) {
  const add = (
    operation: OperatorOperation,
    answer: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
  ): void => {
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
      const body = await answer(request, reply).catch((error: unknown) => {
        throw asProblem(error);
      });
      reply.code(operation.status);
      if (body === undefined) return await reply.send();
      if (operation.streams)
        return await sendStream(reply, operation.streams, body as AsyncIterable<string | Uint8Array>);
      return await reply.type("application/json; charset=utf-8").send(JSON.stringify(body));
    };
    for (const path of pathsOf(operation))
      api.route({
        method: operation.method.toUpperCase(),
        url: path.replace(/\{(\w+)\}/g, ":$1"),
        config: { permission: operation.permission },
        handler,
      });
  };
  return {
    route: <const O extends OperatorOperation>(
      operation: O & { readonly permission: Exclude<OperatorOperation["permission"], "open"> },
      handler: Handler<O>,
    ): void =>
      add(operation, async (request, reply) => {
        const entered = await enter(services, request, operation, operation.permission);
        const read = await readInput<O>(request, operation, http, `operator/${holderOf(entered.caller)}`);
        const limit = limitOf(entered.caller);
        const input = limit === null ? read : await cutToAccounts(services.db, limit, operation, read);
        // `enter` has refused tokens where the permission is personal.
        const context = { services, request, reply, limit, ...entered } as unknown as ContextOf<O>;
        return await handler(context, input);
      }),
    openRoute: <const O extends OperatorOperation>(
      operation: O & { readonly permission: "open" },
      handler: Handler<O, OpenContext>,
    ): void =>
      add(operation, async (request, reply) => {
        enterOpen(services, request, operation);
        return await handler(
          { services, request, reply },
          await readInput<O>(request, operation, http, null),
        );
      }),
  };
}

const pathsOf = ({ path, formerPath }: OperatorOperation): readonly string[] =>
  formerPath === undefined ? [path] : [path, formerPath];

/** The maximum that is buffered for a slow reader. */
const AHEAD_BYTES = 16_384;

/** A failure in the middle can't be reported any more, so the connection is reset, and the client notices that the answer is incomplete. */
function sendStream(
  reply: FastifyReply,
  type: string,
  parts: AsyncIterable<string | Uint8Array>,
): FastifyReply {
  // The content type of a file is set by its handler.
  if (!reply.hasHeader("Content-Type")) reply.type(`${type}; charset=utf-8`);
  return reply
    .header("X-Accel-Buffering", "no")
    .send(Readable.from(parts, { objectMode: false, highWaterMark: AHEAD_BYTES }));
}

/** Errors of actions that are shared with the command line are written for operators. */
function asProblem(error: unknown): unknown {
  if (!(error instanceof OperatorError)) return error;
  return new Problem(error.kind === "missing" ? "not_found" : "conflict", error.message);
}
