/**
 * Places that no request of a run may reach, in every way to write them that is known to fool somebody's parser (docs/decisions/0015).
 * Put together here, not copied: from RFC 3986, RFC 6943, the WHATWG URL rules for hosts, and the IANA
 * registries of special-purpose addresses.
 */

const octal = (part: number): string => `0${part.toString(8)}`;
const hexadecimal = (part: number): string => `0x${part.toString(16)}`;

/** One IPv4 address in the spellings of `inet_aton`, percent-encoded, and inside IPv6. */
function spellings(address: string): readonly string[] {
  const parts = address.split(".").map(Number);
  const [a = 0, b = 0, c = 0, d = 0] = parts;
  const number = ((a * 256 + b) * 256 + c) * 256 + d;
  const high = ((a << 8) | b).toString(16);
  const low = ((c << 8) | d).toString(16);
  return [
    address,
    `${address}.`,
    String(number),
    hexadecimal(number),
    octal(number),
    parts.map(hexadecimal).join("."),
    parts.map(octal).join("."),
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${hexadecimal(a)}.${octal(b)}.${c * 256 + d}`,
    parts.map((part) => `000${octal(part)}`).join("."),
    Array.from(address)
      .map((character) => `%${character.charCodeAt(0).toString(16)}`)
      .join(""),
    Array.from(address)
      .map((character) => (character === "." ? "。" : String.fromCharCode(character.charCodeAt(0) + 0xfee0)))
      .join(""),
    `[::ffff:${address}]`,
    `[::ffff:${high}:${low}]`,
    `[0:0:0:0:0:FFFF:${high}:${low}]`,
    `[::${address}]`,
    `[::ffff:0:${high}:${low}]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b:1::${address}]`,
    `[2002:${high}:${low}::]`,
    `[2001:0:${high}:${low}::1]`,
    `[2606:4700::5efe:${address}]`,
    `[fe80::5efe:${address}]`,
  ];
}

/** Hosts as they stand in a URL. None of them needs a name server. */
export const LITERAL_HOSTS: readonly string[] = [
  ...spellings("127.0.0.1"),
  ...spellings("169.254.169.254"),
  ...[
    "0",
    "0.0.0.0",
    "0x0",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.254",
    "192.0.0.192",
    "192.168.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::ffff:0:0]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[100::1]",
    "[5f00::1]",
  ],
];

/** Names, and the private address that somebody's name server gives for them. */
export const NAMED_HOSTS: readonly (readonly [name: string, address: string])[] = [
  ["localhost", "127.0.0.1"],
  ["LOCALHOST", "::1"],
  ["localhost.", "127.0.0.1"],
  ["app.localhost", "127.0.0.1"],
  ["ip6-localhost", "::1"],
  ["localhost.localdomain", "127.0.0.1"],
  ["127.0.0.1.names.example", "127.0.0.1"],
  ["ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "127.0.0.1"],
  ["metadata.google.internal", "169.254.169.254"],
  ["instance-data", "169.254.169.254"],
  ["printer.local", "192.168.1.20"],
  ["kubernetes.default.svc", "10.96.0.1"],
  ["a", "127.0.0.1"],
  ["zone.example", "fe80::1%1"],
];

/** Classes of addresses, each by its first, last, or a typical one. */
export const ADDRESS_CLASSES: Readonly<Record<string, readonly string[]>> = {
  "this network": ["0.0.0.0", "0.255.255.255"],
  "private 10/8": ["10.0.0.0", "10.255.255.255"],
  "carrier-grade NAT": ["100.64.0.0", "100.127.255.255"],
  loopback: ["127.0.0.0", "127.255.255.255"],
  "link-local": ["169.254.0.0", "169.254.255.255"],
  "cloud metadata": ["169.254.169.254", "169.254.170.2"],
  "private 172.16/12": ["172.16.0.0", "172.31.255.255"],
  "protocol assignments": ["192.0.0.0", "192.0.0.255"],
  "documentation 1": ["192.0.2.0", "192.0.2.255"],
  "6to4 relays": ["192.88.99.0", "192.88.99.255"],
  "private 192.168/16": ["192.168.0.0", "192.168.255.255"],
  benchmarks: ["198.18.0.0", "198.19.255.255"],
  "documentation 2": ["198.51.100.0", "198.51.100.255"],
  "documentation 3": ["203.0.113.0", "203.0.113.255"],
  multicast: ["224.0.0.0", "239.255.255.255"],
  reserved: ["240.0.0.0", "255.255.255.254"],
  broadcast: ["255.255.255.255"],
  "Azure's own": ["168.63.129.16"],
  "unspecified, v6": ["::"],
  "loopback, v6": ["::1"],
  "IPv4-compatible": ["::127.0.0.1", "::8.8.8.8"],
  "IPv4-mapped": ["::ffff:127.0.0.1", "::ffff:8.8.8.8"],
  "IPv4-translated": ["::ffff:0:7f00:1"],
  NAT64: ["64:ff9b::7f00:1", "64:ff9b::808:808"],
  "local NAT64": ["64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
  "discard only": ["100::", "100::ffff:ffff:ffff:ffff"],
  "dummy prefix": ["100:0:0:1::1"],
  Teredo: ["2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"],
  "protocol assignments, v6": ["2001:1::1", "2001:2::1", "2001:1ff:ffff::1"],
  ORCHID: ["2001:10::1", "2001:20::1"],
  "documentation, v6": ["2001:db8::", "2001:db8:ffff::1"],
  "documentation, v6, larger": ["3fff::", "3fff:fff::1"],
  "6to4": ["2002:7f00:1::", "2002:808:808::1"],
  ISATAP: ["2606:4700::5efe:7f00:1", "2606:4700::200:5efe:808:808"],
  "segment routing": ["5f00::1"],
  "outside global unicast": ["4000::1", "1fff::1", "e000::1"],
  "unique local": ["fc00::", "fdff:ffff::1", "fd00:ec2::254"],
  "link-local, v6": ["fe80::1", "febf:ffff::1"],
  "with a zone": ["fe80::1%eth0", "::1%lo", "fd00::1%25eth0"],
  "site-local": ["fec0::1", "feff::1"],
  "multicast, v6": ["ff00::", "ff02::1", "ff0e::1"],
};

/** The IANA registries of special-purpose addresses (RFC 6890 and its updates), for a second opinion from `net.BlockList`. */
export const SPECIAL_V4: readonly (readonly [network: string, prefix: number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/** Inside 2000::/3, which is all that is for the public. */
export const SPECIAL_V6: readonly (readonly [network: string, prefix: number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];
