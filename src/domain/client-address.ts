import ipaddr from "ipaddr.js";
import { limits } from "./limits.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** Proxies whose forwarding headers are trusted. */
export type Network = readonly [address: Address, prefixBits: number];

/** The value of LATCHKEY_TRUSTED_PROXIES, or all of its problems. */
type ParsedProxies =
  | { readonly ok: true; readonly networks: readonly Network[] }
  | { readonly ok: false; readonly problems: readonly string[] };

/** The headers of a request that proxies write; several of one name joined by commas, in their order. */
export interface ProxyHeaders {
  readonly "x-forwarded-for"?: string | string[] | undefined;
  readonly forwarded?: string | string[] | undefined;
}

/** Networks wider than the widest private ones (10.0.0.0/8, fc00::/7) are refused. */
const PREFIX_BITS_MIN = { ipv4: 8, ipv6: 7 } as const;
const PREFIX_BITS_MAX = { ipv4: 32, ipv6: 128 } as const;

/** Reads a list of CIDR networks, separated by commas or white space. */
export function parseTrustedProxies(text: string): ParsedProxies {
  const items = text.split(/[\s,]+/).filter((item) => item !== "");
  const read = items.map(readNetwork);
  const problems = read.filter((item) => typeof item === "string");
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, networks: read.filter((item) => typeof item !== "string") };
}

function readNetwork(item: string): Network | string {
  const problem = (reason: string): string => `"${item}" ${reason}`;
  if (item === "*") return problem("would let every caller choose its own address; list your proxies");
  const bare = parseLiteral(item);
  if (bare !== null)
    return problem(`is not a network; write ${writeAddress(bare)}/${PREFIX_BITS_MAX[bare.kind()]}`);
  const [, base = "", digits = ""] = /^([^/]+)\/(\d{1,3})$/.exec(item) ?? [];
  const address = parseLiteral(base);
  if (address === null) return problem("is not a network; write one like 10.0.0.0/8 or fd00::/8");
  if (base.includes(":") && address.kind() === "ipv4")
    return problem("is an IPv4 network inside IPv6; write the IPv4 network");
  const [kind, bits] = [address.kind(), Number(digits)];
  if (bits > PREFIX_BITS_MAX[kind]) return problem("has a prefix that is too long");
  if (bits < PREFIX_BITS_MIN[kind])
    return problem(
      `is so wide that it includes strangers, who could then choose their own addresses; a prefix must have at least ${PREFIX_BITS_MIN[kind]} bits`,
    );
  const first = firstOf(address, bits);
  if (writeAddress(first) !== writeAddress(address))
    return problem(`has host bits set; write ${writeAddress(first)}/${bits}`);
  return [address, bits];
}

/**
 * The client address of a request: the first address that is not a trusted proxy's, counted from the socket's peer and then from the right of
 * `X-Forwarded-For`, or of `Forwarded` (RFC 7239) where a request has no `X-Forwarded-For`. Everything left of it was written by
 * the client. If a trusted proxy's entry can't be read or contains no address, the result is that proxy's own address.
 */
export function findClientAddress(
  peer: string | undefined,
  headers: ProxyHeaders,
  trusted: readonly Network[],
): string {
  const socket = parseLiteral((peer ?? "").split("%")[0] ?? "");
  // A closed connection has no peer.
  if (socket === null) return UNKNOWN_ADDRESS;
  let client = socket;
  if (trusted.length === 0) return writeAddress(client);
  const hops = readHops(headers);
  for (let hop = 0; hop < limits.proxyHopsMax && isTrusted(client, trusted); hop++) {
    const { value, done } = hops.next();
    if (done === true || value === null) break;
    client = value;
  }
  return writeAddress(client);
}

const UNKNOWN_ADDRESS = "unknown";

/** The key by which a client is counted: an IPv4 address, or the /64 network of an IPv6 client. */
export function networkOf(address: string): string {
  const parsed = parseLiteral(address);
  if (parsed === null || parsed.kind() === "ipv4") return address;
  return `${writeAddress(firstOf(parsed, 64))}/64`;
}

/** Whether an address, as a socket reports it, belongs to this machine or to a trusted proxy. */
export function isNeighbour(peer: string, trusted: readonly Network[]): boolean {
  const address = parseLiteral(peer.split("%")[0] ?? "");
  return address !== null && (address.range() === "loopback" || isTrusted(address, trusted));
}

function isTrusted(address: Address, trusted: readonly Network[]): boolean {
  return trusted.some(([network, bits]) => address.kind() === network.kind() && address.match(network, bits));
}

/** The forwarded addresses, last first; null: not an address. */
function readHops(headers: ProxyHeaders): Iterator<Address | null> {
  const forwardedFor = joined(headers["x-forwarded-for"]);
  if (forwardedFor !== null) return readForwardedFor(forwardedFor);
  return readForwarded(joined(headers.forwarded) ?? "");
}

const joined = (value: string | string[] | undefined): string | null =>
  value === undefined ? null : [value].flat().join(",");

function* readForwardedFor(text: string): Generator<Address | null> {
  for (let end = text.length; end >= 0;) {
    const comma = end === 0 ? -1 : text.lastIndexOf(",", end - 1);
    yield parseNode(text.slice(comma + 1, end).trim());
    end = comma;
  }
}

/** RFC 7239, 4: elements separated by commas, from the right, so that a quote in the client's part cannot reach into a proxy's. */
function* readForwarded(text: string): Generator<Address | null> {
  let end = text.length;
  let isQuoted = false;
  for (let at = text.length - 1; at >= -1; at--) {
    if (at >= 0 && text[at] === '"' && !isEscaped(text, at)) isQuoted = !isQuoted;
    if (at >= 0 && (text[at] !== "," || isQuoted)) continue;
    yield isQuoted ? null : readElement(text.slice(at + 1, end));
    end = at;
  }
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === "\\") slashes++;
  return slashes % 2 === 1;
}

const PAIR = /^\s*([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w-]+)|"((?:[^"\\]|\\.)*)")\s*(?:;|$)/;

/** The value of `for`, exactly one. */
function readElement(text: string): Address | null {
  const nodes: string[] = [];
  for (let rest = text; rest.trim() !== "";) {
    const match = PAIR.exec(rest);
    if (match === null) return null;
    const [all, name = "", token, quoted = ""] = match;
    if (name.toLowerCase() === "for") nodes.push(token ?? quoted.replace(/\\(.)/g, "$1"));
    rest = rest.slice(all.length);
  }
  return nodes.length === 1 ? parseNode(nodes[0] ?? "") : null;
}

/** `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`. Null: `unknown`, `_hidden`, anything else. */
function parseNode(text: string): Address | null {
  const bracketed = /^\[([0-9a-f:.]+)\](?::[\w.-]+)?$/i.exec(text)?.[1];
  if (bracketed !== undefined) return bracketed.includes(":") ? parseLiteral(bracketed) : null;
  return parseLiteral(/^(\d+\.\d+\.\d+\.\d+):[\w.-]+$/.exec(text)?.[1] ?? text);
}

/** Parses an address in its standard form. IPv4 inside IPv6 (`::ffff:192.0.2.1`, as sockets report it) becomes IPv4. */
function parseLiteral(text: string): Address | null {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  if (text.includes("%") || !ipaddr.IPv6.isValid(text)) return null;
  const address = ipaddr.IPv6.parse(text);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** The canonical text of an address. */
const writeAddress = (address: Address): string =>
  address instanceof ipaddr.IPv4 ? address.toString() : address.toRFC5952String();

function firstOf(address: Address, bits: number): Address {
  const text = `${writeAddress(address)}/${bits}`;
  return address instanceof ipaddr.IPv4
    ? ipaddr.IPv4.networkAddressFromCIDR(text)
    : ipaddr.IPv6.networkAddressFromCIDR(text);
}
