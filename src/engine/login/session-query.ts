/**
 * The query parameters of a login of type `query` are added to requests as they leave the service and removed from all returned
 * addresses, so that no node, message or record ever sees them.
 */
export type SessionQuery = readonly (readonly [name: string, value: string])[];

/** A copy with the parameters. Existing ones of the same name are replaced: targets may repeat ours. */
export function withSessionQuery(url: URL, query: SessionQuery): URL {
  const sent = new URL(url);
  const kept = withoutParameters(url.search.slice(1), query);
  const added = new URLSearchParams(query.map(([name, value]): [string, string] => [name, value])).toString();
  sent.search = kept === "" ? added : `${kept}&${added}`;
  return sent;
}

/** An address without the parameters. */
export function withoutSessionQuery(address: string, query: SessionQuery): string {
  return address.replace(/\?([^#\s<>"]*)/g, (_whole, search: string) => {
    const kept = withoutParameters(search, query);
    return kept === "" ? "" : `?${kept}`;
  });
}

/** Response headers that contain addresses. */
const ADDRESS_HEADERS: ReadonlySet<string> = new Set(["location", "content-location", "link", "refresh"]);

export function withoutSessionQueryHeaders(
  headers: ReadonlyMap<string, string>,
  query: SessionQuery,
): ReadonlyMap<string, string> {
  return new Map(
    [...headers].map(([name, value]) => [
      name,
      ADDRESS_HEADERS.has(name) ? withoutSessionQuery(value, query) : value,
    ]),
  );
}

/** The other parameters, byte for byte, because a target may have signed them. */
function withoutParameters(search: string, query: SessionQuery): string {
  const names = new Set(query.map(([name]) => name));
  const isOurs = (part: string): boolean => {
    const [name] = new URLSearchParams(part).keys();
    return name !== undefined && names.has(name);
  };
  return search
    .split("&")
    .filter((part) => part !== "" && !isOurs(part))
    .join("&");
}
