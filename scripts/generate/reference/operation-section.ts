import type {
  OpenApiDocument,
  OperationObject,
  ParameterObject,
  Reference,
  ResponseObject,
} from "../openapi-types.ts";
import { must } from "#lib/assert.ts";
import { html, type Html } from "#lib/html.ts";
import { renderField, renderFields, typeOf } from "./schema-rows.ts";
import { renderInline, renderJson, renderShell, renderText } from "./text.ts";

/** One operation with its place in the document. */
export interface PlacedOperation {
  readonly method: "get" | "post" | "put" | "delete";
  readonly path: string;
  readonly operation: OperationObject;
}

export const renderMethod = (method: string): Html =>
  html`<span class="method method-${method}">${method.toUpperCase()}</span>`;

/** An operation: its parameters and answers on one side, sample calls on the other. */
export function renderOperation(document: OpenApiDocument, placed: PlacedOperation): Html {
  const { operation, method, path } = placed;
  return html`<article class="operation" id="${operation.operationId}">
    <h3><a href="#${operation.operationId}">${operation.summary}</a></h3>
    <p class="call">${renderMethod(method)} <code>${breakable(path)}</code></p>
    <div class="columns">
      <div class="facts">
        ${renderText(operation.description)} ${renderParameters(document, operation)}
        ${renderBody(document, operation)} ${renderAnswers(document, operation)}
      </div>
      <div class="samples">${renderSamples(operation)}</div>
    </div>
  </article>`;
}

/** A path that can be wrapped after its slashes on narrow screens. */
const breakable = (path: string): Html =>
  html`${path.split("/").map((part, index) => (index === 0 ? part : html`/<wbr />${part}`))}`;

function resolveParameter(
  document: OpenApiDocument,
  parameter: ParameterObject | Reference,
): ParameterObject {
  if (!("$ref" in parameter)) return parameter;
  const name = parameter.$ref.slice("#/components/parameters/".length);
  return must(document.components.parameters[name], `the parameter ${name}`);
}

function renderParameters(document: OpenApiDocument, operation: OperationObject): Html | null {
  const parameters = (operation.parameters ?? []).map((parameter) => resolveParameter(document, parameter));
  if (parameters.length === 0) return null;
  const rows = parameters.map((parameter) =>
    renderField(
      parameter.name,
      `${parameter.in}, ${typeOf(parameter.schema)}`,
      parameter.required ? "required" : "",
      parameter.description,
    ),
  );
  return html`<h4>Parameters</h4>
    <dl class="fields">${rows}</dl>`;
}

function renderBody(document: OpenApiDocument, operation: OperationObject): Html | null {
  if (operation.requestBody === undefined) return null;
  return html`${Object.entries(operation.requestBody.content).map(
    ([type, media]) =>
      html`<h4>Body <code>${type}</code></h4>
        ${renderFields(document, media.schema, true)}`,
  )}`;
}

function renderAnswers(document: OpenApiDocument, operation: OperationObject): Html {
  const own = Object.entries(operation.responses).flatMap(([status, response]) =>
    "$ref" in response ? [] : [renderAnswer(document, status, response)],
  );
  const shared = Object.entries(operation.responses).filter(([, response]) => "$ref" in response);
  const also = shared.map(([status]) => status).join(", ");
  return html`<h4>Answers</h4>
    ${own}${also === "" ? null : html`<p class="also">Also <a href="#failures">${also}</a>.</p>`}`;
}

/** One answer. A success is expanded, and its first example is shown next to the operation. */
export function renderAnswer(document: OpenApiDocument, status: string, response: ResponseObject): Html {
  const media = Object.values(response.content ?? {})[0];
  const isSuccess = Number(status) < 400;
  const headers = Object.keys(response.headers ?? {}).filter((name) => !EVERYWHERE.includes(name));
  const examples = Object.values(media?.examples ?? {}).slice(isSuccess ? 1 : 0);
  return html`<details class="answer" ${isSuccess ? "open" : ""}>
    <summary>
      <span class="status status-${status.slice(0, 1)}">${status}</span> ${renderInline(response.description)}
    </summary>
    ${renderHeaders(document, headers)}
    ${media && isSuccess ? renderFields(document, media.schema, false) : null}
    ${examples.map(({ value }) => renderJson(value))}
  </details>`;
}

/** Headers of every answer, which are described once, with the failures. */
export const EVERYWHERE: readonly string[] = [
  "X-Request-Id",
  "Cache-Control",
  "RateLimit",
  "RateLimit-Policy",
];

/** The descriptions of headers, by their names in the components. */
export function renderHeaders(document: OpenApiDocument, names: readonly string[]): Html | null {
  if (names.length === 0) return null;
  const rows = names.map((name) =>
    renderField(
      name,
      "header",
      "",
      must(document.components.headers[name], `the header ${name}`).description,
    ),
  );
  return html`<dl class="fields">${rows}</dl>`;
}

/** The commands, and an example of the first success. */
function renderSamples(operation: OperationObject): Html {
  const [status, response] = must(Object.entries(operation.responses)[0], "the first response");
  const media = "$ref" in response ? undefined : Object.values(response.content ?? {})[0];
  const example = media && Object.values(media.examples)[0];
  return html`${operation["x-codeSamples"].map(
    ({ lang, label, source }) =>
      html`<figure data-language="${lang.toLowerCase()}">
        <figcaption>${label}</figcaption>
        ${renderShell(source)}
      </figure>`,
  )}${
    example &&
    html`<figure>
      <figcaption>${status}</figcaption>
      ${renderJson(example.value)}
    </figure>`
  }`;
}
