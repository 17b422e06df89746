import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { openApiDocument } from "../../scripts/generate/openapi-document.ts";
import type { ApiAnswer } from "../caller.ts";

/** Every operation of the document that wants an API key. */
export function keyedOperations(): readonly {
  readonly method: string;
  readonly path: string;
  readonly operation: string;
}[] {
  return Object.entries(openApiDocument().paths).flatMap(([path, item]) =>
    (["put", "get", "post", "delete"] as const).flatMap((method) => {
      const operation = item[method];
      return operation && operation.security === undefined
        ? [{ method, path, operation: operation.operationId }]
        : [];
    }),
  );
}

/** A request that only a raw client sends: an absolute form, which is for proxies. */
export async function sendAbsolute(url: string, method: string, path: string): Promise<ApiAnswer> {
  const { hostname, port } = new URL(url);
  const sent = request({ hostname, port, method, path: `http://elsewhere.example/api/v1${path}` }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const headers = new Headers(
    Object.entries(response.headersDistinct).map(([name, values]) => [name, String(values)]),
  );
  return { status: response.statusCode ?? 0, headers, text: await text(response), body: undefined };
}
