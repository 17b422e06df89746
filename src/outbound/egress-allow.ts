import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { bareHost, isDisguise, isLiteral, parseAddress, type Network } from "./addresses.ts";

/** LATCHKEY_EGRESS_ALLOW as `openGate` accepts it, or all its problems. */
export type ParsedEgressAllow =
  | { readonly ok: true; readonly items: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Reads LATCHKEY_EGRESS_ALLOW: CIDR networks and `host:port` pairs that may be private, separated by commas or white space. A
 * pair whose host is a name allows loopback and private addresses for it, but never link-local ones.
 */
export function parseEgressAllow(text: string): ParsedEgressAllow {
  const items = text.split(/[\s,]+/).filter((item) => item !== "");
  const problems = items
    .map(readAllowItem)
    .flatMap((read) => (read.kind === "problem" ? [read.problem] : []));
  return problems.length > 0 ? { ok: false, problems } : { ok: true, items };
}

export type AllowItem =
  | { readonly kind: "network"; readonly network: Network }
  | { readonly kind: "endpoint"; readonly endpoint: string }
  | { readonly kind: "problem"; readonly problem: string };

export function readAllowItem(item: string): AllowItem {
  const problem = (remedy: string): AllowItem => ({
    kind: "problem",
    problem: `"${item}" is neither a network nor a host:port; ${remedy}`,
  });
  if (isIP(item) !== 0) {
    const [bits, host] = isIP(item) === 4 ? [32, item] : [128, `[${item}]`];
    return problem(`write ${item}/${bits}, or ${host}:443`);
  }
  return item.includes("/") ? readNetwork(item, problem) : readEndpoint(item, problem);
}

function readNetwork(item: string, problem: (remedy: string) => AllowItem): AllowItem {
  const [base = "", bits = ""] = item.split("/");
  if (isIP(base) === 0 || !/^\d{1,3}$/.test(bits) || item.split("/").length !== 2)
    return problem("write a network like 10.0.0.0/8");
  if (Number(bits) > (isIP(base) === 4 ? 32 : 128)) return problem("its prefix is too long");
  const network: Network = ipaddr.parseCIDR(item);
  if (isDisguise(network[0]))
    return problem("IPv4 addresses inside IPv6 are always refused; write the IPv4 network");
  const first =
    network[0].kind() === "ipv4"
      ? ipaddr.IPv4.networkAddressFromCIDR(item)
      : ipaddr.IPv6.networkAddressFromCIDR(item);
  if (first.toNormalizedString() !== network[0].toNormalizedString())
    return problem(`write ${first.toString()}/${bits}`);
  return { kind: "network", network };
}

function readEndpoint(item: string, problem: (remedy: string) => AllowItem): AllowItem {
  const [, host, digits] = /^(\[[0-9a-f:.]+\]|[^\s:/@?#\\[\]]+):(\d{1,5})$/i.exec(item) ?? [];
  const port = Number(digits);
  // The URL parser normalises the host as in a request: lower case, punycode, four decimal numbers.
  if (host === undefined || !URL.canParse(`http://${host}/`))
    return problem("write one like 10.0.0.0/8 or erp.internal:8443");
  if (port < 1 || port > 65_535) return problem("its port must be from 1 to 65535");
  const { hostname } = new URL(`http://${host}/`);
  if (isLiteral(hostname) && isDisguise(parseAddress(bareHost(hostname)))) {
    return problem("IPv4 addresses inside IPv6 are always refused; write the IPv4 address");
  }
  return { kind: "endpoint", endpoint: `${hostname}:${port}` };
}
