import { must } from "#lib/assert.ts";
import { html, type Html } from "#lib/html.ts";
import type { OpenApiDocument, SchemaObject } from "../openapi-types.ts";
import { renderInline } from "./text.ts";

/** One line of a field table. */
interface Row {
  /** In dot notation, `[]` for the items of an array and `<key>` for any key. */
  readonly name: string;
  readonly schema: SchemaObject;
  readonly isRequired: boolean;
}

function resolveSchema(document: OpenApiDocument, schema: SchemaObject): SchemaObject {
  if (schema.$ref === undefined) return schema;
  const name = schema.$ref.slice("#/components/schemas/".length);
  return must(document.components.schemas[name], `the schema ${name}`);
}

/** The object among the alternatives of a field that may be null; otherwise the schema itself. */
function mainSchema(document: OpenApiDocument, schema: SchemaObject): SchemaObject {
  const resolved = resolveSchema(document, schema);
  const alternative = resolved.anyOf?.find((item) => item.type !== "null");
  return alternative === undefined ? resolved : resolveSchema(document, alternative);
}

function rowsOf(document: OpenApiDocument, schema: SchemaObject, prefix: string): readonly Row[] {
  const object = mainSchema(document, schema);
  const rows: Row[] = [];
  for (const [name, field] of Object.entries(object.properties ?? {})) {
    const isRequired = object.required?.includes(name) ?? false;
    rows.push({ name: `${prefix}${name}`, schema: withText(document, field), isRequired });
    rows.push(...rowsOf(document, field, `${prefix}${name}.`));
  }
  const items = object.items;
  if (items !== undefined && object.type === "array") {
    rows.push(...rowsOf(document, items, `${prefix.replace(/\.$/, "")}[].`));
  }
  const values = object.additionalProperties;
  if (values !== undefined && (values.$ref !== undefined || values.description !== undefined)) {
    rows.push({ name: `${prefix}<key>`, schema: withText(document, values), isRequired: false });
    rows.push(...rowsOf(document, values, `${prefix}<key>.`));
  }
  return rows;
}

/** A field that is only a reference, with the description of its target. */
const withText = (document: OpenApiDocument, field: SchemaObject): SchemaObject =>
  field.$ref === undefined ? field : resolveSchema(document, field);

const FORMATS: Readonly<Record<string, string>> = { "date-time": "timestamp", uuid: "UUID", uri: "URL" };

/** The type of a field in words. */
export function typeOf(schema: SchemaObject): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.anyOf !== undefined)
    return schema.anyOf.map((item) => (item.$ref === undefined ? typeOf(item) : "object")).join(" or ");
  const types = typeof schema.type === "string" ? [schema.type] : (schema.type ?? ["any value"]);
  const format = schema.format === undefined ? undefined : FORMATS[schema.format];
  return types.map((type) => (type === "string" ? (format ?? type) : type)).join(" or ");
}

/** A field with its name, type and description. */
export function renderField(name: string, type: string, mark: string, description: string): Html {
  return html`<div class="field">
    <dt>
      <code class="name">${name}</code>
      <span class="type">${type}</span>${mark === "" ? "" : html` <span class="mark">${mark}</span>`}
    </dt>
    <dd>${renderInline(description)}</dd>
  </div>`;
}

/** Every field of a schema, nested ones by their path. `marks`: whether to mark required fields. */
export function renderFields(document: OpenApiDocument, schema: SchemaObject, marks: boolean): Html {
  const resolved = resolveSchema(document, schema);
  if (resolved.oneOf !== undefined) {
    return html`${resolved.oneOf.map((form) => {
      const { title, description } = resolveSchema(document, form);
      return html`<h5>${title}</h5>
        <p>${renderInline(description ?? "")}</p>
        ${renderFields(document, form, marks)}`;
    })}`;
  }
  const rows = rowsOf(document, resolved, "").map((row) =>
    renderField(
      row.name,
      typeOf(row.schema),
      marks && row.isRequired ? "required" : "",
      row.schema.description ?? "",
    ),
  );
  return html`<dl class="fields">${rows}</dl>`;
}
