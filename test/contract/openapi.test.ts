import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import Fastify from "fastify";
import type { Services } from "#actions/services.ts";
import { registerApi } from "#api/routes.ts";
import { openApiDocument } from "../../scripts/generate/openapi-document.ts";
import type {
  OperationObject,
  ParameterObject,
  Reference,
  ResponseObject,
} from "../../scripts/generate/openapi-types.ts";
import { OPERATIONS } from "../../scripts/generate/public-api/operations.ts";
import { must } from "#lib/assert.ts";
import { expectSchema } from "./expect-contract.ts";

const document = openApiDocument();
const METHODS = ["put", "get", "post", "delete"] as const;

interface Placed {
  readonly method: string;
  readonly path: string;
  readonly operation: OperationObject;
}

const placed: readonly Placed[] = Object.entries(document.paths).flatMap(([path, item]) =>
  METHODS.flatMap((method) => (item[method] ? [{ method, path, operation: item[method] }] : [])),
);

/** Every `$ref` of a value. */
function refsIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => (key === "$ref" ? [String(item)] : refsIn(item)));
}

/** What a reference of the document points at; undefined when there is nothing. */
function follow(ref: string): unknown {
  assert.match(ref, /^#\//);
  return ref
    .slice(2)
    .split("/")
    .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], document);
}

function resolved<T extends object>(value: T | Reference): T {
  return "$ref" in value ? (must(follow(value.$ref), value.$ref) as T) : value;
}

test("the committed openapi.json is what the schemas generate", () => {
  const committed = readFileSync(new URL("../../openapi/openapi.json", import.meta.url), "utf8");
  assert.equal(committed, `${JSON.stringify(document, null, 2)}\n`, "run `npm run generate`");
});

test("openapi.json is a valid OpenAPI 3.1 document", async () => {
  const copy = structuredClone(document) as unknown as Record<string, unknown>;
  const { valid, errors } = await new Validator().validate(copy);
  assert.ok(valid, JSON.stringify(errors, null, 2));
  const broken = { ...structuredClone(copy), paths: { "/x": { get: { responses: { 200: {} } } } } };
  assert.equal((await new Validator().validate(broken)).valid, false, "the validator looks at responses");
});

test("every reference resolves, and every component is used", () => {
  const refs = new Set(refsIn(document));
  for (const ref of refs) assert.notEqual(follow(ref), undefined, ref);
  const components = Object.entries(document.components).flatMap(([kind, all]) =>
    kind === "securitySchemes" ? [] : Object.keys(all).map((name) => `#/components/${kind}/${name}`),
  );
  assert.deepEqual(
    components.filter((name) => !refs.has(name)),
    [],
  );
});

test("operations have unique ids, a tag of the list, and a command", () => {
  const ids = placed.map(({ operation }) => operation.operationId);
  assert.deepEqual(ids, [...new Set(ids)]);
  assert.deepEqual(
    ids,
    OPERATIONS.map(({ id }) => id),
    "in the interface's order",
  );
  const tags = document.tags.map(({ name }) => name);
  for (const { operation } of placed) {
    for (const tag of operation.tags) assert.ok(tags.includes(tag), tag);
    assert.ok(operation.summary !== "" && operation.description !== "", operation.operationId);
    assert.ok(operation["x-codeSamples"].length > 0, operation.operationId);
  }
});

test("path parameters are those of the path, and every parameter is described", () => {
  for (const { path, operation } of placed) {
    const parameters = (operation.parameters ?? []).map((parameter) => resolved<ParameterObject>(parameter));
    const inPath = parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
    assert.deepEqual(
      inPath,
      [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
      path,
    );
    for (const { name, description } of parameters) assert.notEqual(description, "", name);
  }
});

test("every response has a description, its headers and a schema; an empty body is a 204", () => {
  for (const { operation } of placed) {
    for (const [status, entry] of Object.entries(operation.responses)) {
      const response = resolved<ResponseObject>(entry);
      const what = `${operation.operationId} ${status}`;
      assert.notEqual(response.description, "", what);
      assert.ok(response.headers?.["X-Request-Id"] && response.headers["Cache-Control"], what);
      const schema = Object.values(response.content ?? {})[0]?.schema;
      assert.equal(schema === undefined, status === "204", what);
      if (Number(status) >= 400 && operation.security === undefined) {
        assert.deepEqual(schema, { $ref: "#/components/schemas/Error" }, what);
      }
    }
  }
});

test("every example is what its schema says", () => {
  for (const { operation } of placed) {
    const responses = Object.values(operation.responses).map((entry) => resolved<ResponseObject>(entry));
    for (const content of [
      operation.requestBody?.content,
      ...responses.map((response) => response.content),
    ]) {
      for (const media of Object.values(content ?? {})) {
        const examples = Object.entries(media.examples);
        assert.ok(examples.length > 0, operation.operationId);
        const isRequest = content === operation.requestBody?.content;
        for (const [name, { value }] of examples) {
          // Responses as this version writes them: with every key. A request may leave keys out.
          const whole = isRequest ? { ...nulls(media.schema), ...(value as object) } : value;
          expectSchema(`${operation.operationId}, example ${name}`, media.schema, whole);
        }
      }
    }
  }
});

/** The keys of a request that may be null, as null: the checker wants every key. */
function nulls(schema: object): object {
  const { properties, required, additionalProperties } = resolved<{
    properties?: object;
    required?: readonly string[];
    additionalProperties?: unknown;
  }>(schema);
  if (additionalProperties !== undefined) return {};
  return Object.fromEntries(
    Object.keys(properties ?? {}).flatMap((name) => (required?.includes(name) ? [] : [[name, null]])),
  );
}

test("the document has every route of the public API, and no other", async () => {
  const app = Fastify({ exposeHeadRoutes: false });
  const routes: string[] = [];
  app.addHook("onRoute", ({ method, url }) => {
    if (url.startsWith("/api/v1/"))
      routes.push(`${String(method).toLowerCase()} ${url.slice("/api/v1".length)}`);
  });
  // Routes are declared without looking at the services.
  registerApi(app, {} as Services);
  await app.ready();
  const described = placed
    .filter(({ path }) => document.paths[path]?.servers === undefined)
    .map(({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`);
  assert.deepEqual(routes, described);
  await app.close();
});

test("a deployment's document names its own address, and nothing else differs", () => {
  const own = JSON.stringify(openApiDocument("https://latchkey.example.org"));
  assert.match(own, /"https:\/\/latchkey\.example\.org\/api\/v1"/);
  assert.equal(
    own.replaceAll("https://latchkey.example.org", "http://127.0.0.1:8080"),
    JSON.stringify(document),
  );
});
