import { Type, type Static } from "typebox";
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
          "Over the JSON body; its value is sent as `param`, or as `$cursor` of the request, for the next page. Pages end when it gives nothing, null, false or an empty text.",
      }),
    ),
    page: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "The number of the first page, sent as `param`, or as `$page` of the request. Pages end with one that gives no records.",
      }),
    ),
    offset: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "The first offset, sent as `param`, or as `$offset` of the request; it grows by the records of every page. Pages end with one that gives none, or fewer than `size`.",
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
          "Over the JSON body; the address of the next page, within the hosts. Pages end when it gives nothing, null, false or an empty text.",
      }),
    ),
    next_css: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1_000,
        description:
          "The link of an HTML page to the next one, within the hosts: `css` (its href) or `css@attr`. Pages end with one that has no such link.",
      }),
    ),
    while: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "page",
        description:
          "Over the JSON body, with `$page`, the number of its page, and `$offset`: false on the last page. With `page` and `offset` it decides in place of the number of records.",
      }),
    ),
    param: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "The query parameter that carries the cursor, the page or the offset. Not needed where the request uses `$cursor`, `$page` or `$offset`.",
      }),
    ),
    size: Type.Optional(Type.Integer({ minimum: 1, description: "offset: the records of a full page." })),
    size_param: Type.Optional(
      Type.String({
        minLength: 1,
        description: "offset: the query parameter that carries `size`, if it shall be sent.",
      }),
    ),
    max_pages: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.pagesMax,
        default: limits.pagesMax,
        description: "With more to come after this many pages, the node fails.",
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      "One request a page: by `cursor`, `page`, `offset`, `link_header`, `next_url` or `next_css`.",
  },
);

export type Paginate = Static<typeof paginateSchema>;
