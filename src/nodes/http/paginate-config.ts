import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { EXPRESSION } from "#domain/expression.ts";
import { limits } from "#domain/limits.ts";

/** `paginate` of an `http` node. */
export const paginateSchema = Type.Object(
  {
    cursor: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "page",
        description:
          "An expression over the JSON body: its value is sent as `param`, or used as `$cursor` in the request, for the next page. Pagination ends when it is missing, null, false or an empty string.",
      }),
    ),
    page: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "The number of the first page, sent as `param`, or used as `$page` in the request. Pagination ends with a page without records.",
      }),
    ),
    offset: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "The first offset, sent as `param`, or used as `$offset` in the request. It increases by the number of records of each page. Pagination ends with a page without records, or with fewer than `size`.",
      }),
    ),
    link_header: Type.Optional(
      Type.Literal(true, { description: "Follows the Link header's rel=next (RFC 8288), within the hosts." }),
    ),
    next_url: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "page",
        description:
          "An expression over the JSON body: the url of the next page, within the hosts. Pagination ends when it is missing, null, false or an empty string.",
      }),
    ),
    next_css: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1_000,
        description:
          "The link of an HTML page to the next one, within the hosts: `css` (its href) or `css@attr`. Pagination ends with a page without such a link.",
      }),
    ),
    while: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "page",
        description:
          "An expression over the JSON body, with `$page` (the page's number) and `$offset`: false on the last page. With `page` and `offset`, it decides instead of the number of records.",
      }),
    ),
    param: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "The query parameter for the cursor, the page or the offset. Not needed if the request uses `$cursor`, `$page` or `$offset`.",
      }),
    ),
    size: Type.Optional(
      Type.Integer({ minimum: 1, description: "With `offset`: the number of records of a full page." }),
    ),
    size_param: Type.Optional(
      Type.String({
        minLength: 1,
        description: "With `offset`: the query parameter in which `size` is sent, if any.",
      }),
    ),
    max_pages: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.pagesMax,
        default: limits.pagesMax,
        description: "The node fails if there are more pages than this.",
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      "One request per page, by `cursor`, `page`, `offset`, `link_header`, `next_url` or `next_css`.",
  },
);

export type Paginate = Static<typeof paginateSchema>;
