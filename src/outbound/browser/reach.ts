import { GateError } from "#outbound/gate-error.ts";

/** Where a browser may go. */
export interface Reach {
  /** Origins whose documents may be opened, in windows and in frames. */
  readonly hosts: readonly string[];
  /** Origins of everything else that a page loads, besides `hosts`; `any`: every public address. */
  readonly resources: readonly string[] | "any";
}

export function mayBeDocument({ hosts }: Reach, url: URL): boolean {
  return hosts.includes(url.origin);
}

/** `data:` and `blob:` have nothing to reach. */
export function mayBeLoaded(reach: Reach, url: URL): boolean {
  if (url.protocol !== "http:" && url.protocol !== "https:") return true;
  return (
    reach.resources === "any" || reach.hosts.includes(url.origin) || reach.resources.includes(url.origin)
  );
}

/**
 * The origins of `hosts` that a connection may belong to. A tunnel says host and port only, and carries WebSockets of both
 * schemes.
 */
export function hostsOf({ hosts }: Reach, url: URL, isTunnel: boolean): readonly string[] {
  return hosts.filter((origin) => isSame(origin, url, isTunnel));
}

/** Throws GateError if no connection to this host and port may be made. */
export function admitConnection(reach: Reach, url: URL, isTunnel: boolean): void {
  const { hosts, resources } = reach;
  if (resources === "any") return;
  if ([...hosts, ...resources].some((origin) => isSame(origin, url, isTunnel))) return;
  throw new GateError("refused", `${url.host} is neither one of the hosts nor one of the resources`);
}

function isSame(origin: string, url: URL, isTunnel: boolean): boolean {
  if (!isTunnel) return origin === url.origin;
  const listed = new URL(origin);
  return listed.hostname === url.hostname && portOf(listed) === portOf(url);
}

const portOf = ({ port, protocol }: URL): string => port || (protocol === "https:" ? "443" : "80");
