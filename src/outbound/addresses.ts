import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Network = readonly [address: Address, prefixBits: number];

const ipv6 = (cidr: string): Network => ipaddr.IPv6.parseCIDR(cidr);

/**
 * IPv4 addresses embedded in IPv6 (mapped, translated, NAT64, 6to4, Teredo) are always refused, even if the operator allows a
 * wider network (docs/decisions/0015). ISATAP is recognised by its interface id.
 */
const DISGUISES: readonly Network[] = [
  ipv6("::ffff:0:0/96"),
  ipv6("::ffff:0:0:0/96"),
  ipv6("64:ff9b::/96"),
  ipv6("64:ff9b:1::/48"),
  ipv6("2002::/16"),
  ipv6("2001::/32"),
];

const GLOBAL_V6 = ipv6("2000::/3");
/** Networks in 2000::/3 that are not public: protocol assignments, documentation, 6to4. */
const NOT_PUBLIC_V6: readonly Network[] = [
  ipv6("2001::/23"),
  ipv6("2001:db8::/32"),
  ipv6("2002::/16"),
  ipv6("3fff::/20"),
];

/** Azure's own service address, although it looks public. */
const AZURE_WIRE_SERVER = "168.63.129.16";

/** Parses an address in any form that `net.isIP` accepts. A zone (`fe80::1%eth0`) is ignored. */
export function parseAddress(text: string): Address {
  return ipaddr.parse(text.split("%")[0] ?? text);
}

/** The host of a URL without the brackets of IPv6. */
export function bareHost(hostname: string): string {
  return hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
}

export function isLiteral(hostname: string): boolean {
  return isIP(bareHost(hostname)) !== 0;
}

export function isWithin(address: Address, [network, prefixBits]: Network): boolean {
  return address.kind() === network.kind() && address.match(network, prefixBits);
}

export function isDisguise(address: Address): boolean {
  if (address instanceof ipaddr.IPv4) return false;
  if (DISGUISES.some((network) => isWithin(address, network))) return true;
  // ISATAP, RFC 5214, 6.1: 0000:5efe or 0200:5efe, and then the IPv4 address.
  const [high, low] = address.parts.slice(4, 6);
  return high !== undefined && (high & 0xfdff) === 0 && low === 0x5efe;
}

export function isPublic(address: Address): boolean {
  if (address instanceof ipaddr.IPv4)
    return address.range() === "unicast" && address.toString() !== AZURE_WIRE_SERVER;
  return isWithin(address, GLOBAL_V6) && !NOT_PUBLIC_V6.some((network) => isWithin(address, network));
}

export function describe(address: Address): string {
  const range = address.range();
  return range === "unicast" ? "reserved" : range.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
