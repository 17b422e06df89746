import type { OpenApiDocument } from "../openapi-types.ts";
import { must } from "#lib/assert.ts";
import { html, type Html } from "#lib/html.ts";
import {
  EVERYWHERE,
  renderAnswer,
  renderHeaders,
  renderMethod,
  renderOperation,
  type PlacedOperation,
} from "./operation-section.ts";
import { SDK_SETUP } from "../sdk-samples.ts";
import { renderFields } from "./schema-rows.ts";
import { renderShell, renderText } from "./text.ts";

const METHODS = ["put", "get", "post", "delete"] as const;

function operationsOf(document: OpenApiDocument, tag: string): readonly PlacedOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      return operation?.tags.includes(tag) ? [{ method, path, operation }] : [];
    }),
  );
}

/**
 * The reference of the API as a page: complete without script, nothing from elsewhere. Its style sheet and its script (the language of the
 * examples, Copy, search) are `docs/style.css` and `docs/script.js` beside it.
 */
export function renderReference(document: OpenApiDocument): Html {
  const server = must(document.servers[0], "the server").url;
  const groups = document.tags.map((tag) => ({ ...tag, operations: operationsOf(document, tag.name) }));
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${document.info.title}</title>
        <link rel="icon" href="favicon.ico" />
        <link rel="stylesheet" href="docs/style.css" />
        <script type="module" src="docs/script.js"></script>
      </head>
      <body>
        <a class="skip" href="#content">Skip to the content</a>
        <nav aria-label="Contents">
          <p class="brand"><a href="#content">${document.info.title}</a></p>
          ${renderTools()}
          <ul>
            <li><a href="#start">Start</a></li>
            <li><a href="#failures">Failures</a></li>
          </ul>
          ${groups.map((group) => renderContents(group.name, group.operations))}
          <p><a href="openapi.json">openapi.json</a></p>
        </nav>
        <main id="content">
          <header>
            <h1>${document.info.title} <small>${document.info.version}</small></h1>
            <p class="lead">${document.info.summary}</p>
          </header>
          ${renderStart(document, server)} ${renderFailures(document)}
          ${groups.map(
            (group) =>
              html`<section>
                <h2>${group.name}</h2>
                ${renderText(group.description)}
                ${group.operations.map((placed) => renderOperation(document, placed))}
              </section>`,
          )}
        </main>
      </body>
    </html>`;
}

function renderContents(name: string, operations: readonly PlacedOperation[]): Html {
  const links = operations.map(
    ({ method, operation }) =>
      html`<li><a href="#${operation.operationId}">${renderMethod(method)} ${operation.summary}</a></li>`,
  );
  return html`<p class="group">${name}</p>
    <ul>
      ${links}
    </ul>`;
}

const LANGUAGES = [
  ["shell", "curl"],
  ["typescript", "TypeScript"],
  ["python", "Python"],
] as const;

/** Hidden until the script runs. */
function renderTools(): Html {
  return html`<div data-tool hidden>
      <label for="search">Search</label>
      <input id="search" type="search" autocomplete="off" spellcheck="false" aria-describedby="found" />
      <p id="found" role="status"></p>
    </div>
    <fieldset data-tool hidden>
      <legend>Examples</legend>
      <div class="choices">
        ${LANGUAGES.map(
          ([value, name]) =>
            html`<label><input type="radio" name="language" value="${value}" /> <span>${name}</span></label>`,
        )}
      </div>
    </fieldset>`;
}

function renderStart(document: OpenApiDocument, server: string): Html {
  const url = server.replace(/\/api\/v1$/, "");
  const setup = `export PUBLIC_URL=${url}\nexport BASE_URL=${server}\nexport API_KEY=<API_KEY>`;
  return html`<section id="start">
    <h2>Start</h2>
    ${renderText(document.info.description)}
    <p>The examples on this page go on from here, with ids of your own:</p>
    <figure data-language="shell">
      <figcaption>In a shell</figcaption>
      ${renderShell(setup)}
    </figure>
    <figure data-language="typescript">
      <figcaption>TypeScript</figcaption>
      ${renderShell(SDK_SETUP.typescript(url))}
    </figure>
    <figure data-language="python">
      <figcaption>Python</figcaption>
      ${renderShell(SDK_SETUP.python(url))}
    </figure>
  </section>`;
}

/** The failures of every operation, described once. */
function renderFailures(document: OpenApiDocument): Html {
  const used = Object.values(document.paths)
    .flatMap((item) => METHODS.map((method) => item[method]?.responses ?? {}))
    .flatMap((responses) => Object.entries(responses));
  const statusOf = (name: string): string =>
    must(
      used.find(([, response]) => "$ref" in response && response.$ref.endsWith(`/${name}`)),
      `a response ${name}`,
    )[0];
  return html`<section id="failures">
    <h2>Failures</h2>
    <p>
      Every failure has the envelope below; <code>field</code> names the invalid part, and
      <code>code</code> the problem. The headers below are part of every answer under the base URL.
    </p>
    ${renderFields(document, { $ref: "#/components/schemas/Error" }, false)}
    ${renderHeaders(document, EVERYWHERE)}
    <p>Every operation under the base URL can answer:</p>
    ${Object.entries(document.components.responses).map(([name, response]) =>
      renderAnswer(document, statusOf(name), response),
    )}
  </section>`;
}
