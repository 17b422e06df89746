/**
 * The layers of `src/` and the package fences, as data. `oxlint.config.ts` makes the lint rules of this
 * table, and `npm run generate` the picture in `ARCHITECTURE.md`, so the fence is the documentation; `test/layers.test.ts` proves that every forbidden import really fails.
 */

/** A folder of `src/`. */
export type Layer = {
  folder: string;
  /** What lives there, one line. */
  holds: string;
  /** The folders it may import as `#folder/file.ts`; its own is always allowed. */
  mayImport: readonly string[];
};

/** What actions and runs are made of. */
const PARTS = [
  "vault",
  "db",
  "blobs",
  "outbound",
  "nodes",
  "strategies",
  "answers",
  "expressions",
  "domain",
  "lib",
] as const;

/** From the top down: a folder imports only from folders further down. */
export const LAYERS = [
  {
    folder: "service",
    holds: "the program put together: settings, keys, database, object store, servers",
    mayImport: ["cli", "api", "hosted", "operator", "worker", "actions", "engine", "contract", ...PARTS],
  },
  { folder: "cli", holds: "commands", mayImport: ["contract", "actions", "engine", ...PARTS] },
  {
    folder: "api",
    holds: "`/api/v1`: one line an endpoint, one file a resource",
    mayImport: ["actions", "domain", "lib"],
  },
  {
    folder: "hosted",
    holds: "the pages that end users see",
    mayImport: ["actions", "strategies", "domain", "lib"],
  },
  {
    folder: "operator",
    holds: "`/operator/v1`: dashboard back end, sign-in",
    mayImport: ["contract", "actions", "domain", "lib"],
  },
  {
    folder: "worker",
    holds: "takes runs and executes them; chores",
    mayImport: ["engine", "actions", "outbound", "db", "domain", "lib"],
  },
  {
    folder: "actions",
    holds: "what the product does: one verb a file, one transaction each",
    mayImport: PARTS,
  },
  { folder: "engine", holds: "executes one run, from its claim to its end", mayImport: PARTS },
  {
    folder: "nodes",
    holds: "Blueprint node types, and what they are made of",
    mayImport: ["answers", "domain", "lib"],
  },
  {
    folder: "strategies",
    holds: "login types, and what they are made of",
    mayImport: ["answers", "domain", "lib"],
  },
  {
    folder: "answers",
    holds:
      "what a target's answer is held against, how its pages are read and its forms filled in, for nodes and logins alike",
    mayImport: ["domain", "lib"],
  },
  {
    folder: "expressions",
    holds: "JSONata, templates, the worker threads that can be killed",
    mayImport: ["domain", "lib"],
  },
  {
    folder: "contract",
    holds: "the wire: operations of the operator API, and what both APIs say in the same words",
    mayImport: ["domain", "lib"],
  },
  { folder: "vault", holds: "bytes in, bytes out: seal, open, rewrap", mayImport: ["lib"] },
  { folder: "db", holds: "the only SQL in the service", mayImport: ["domain", "lib"] },
  { folder: "blobs", holds: "local disk or S3, signed URLs", mayImport: ["lib"] },
  {
    folder: "outbound",
    holds: "how other people's systems are reached: the egress gate",
    mayImport: ["domain", "lib"],
  },
  { folder: "domain", holds: "meaning without I/O, clock or randomness", mayImport: ["lib"] },
  { folder: "lib", holds: "assert, Secret, log, html, canonical JSON, group commit", mayImport: [] },
] as const satisfies readonly Layer[];

/** The rooms inside a layer, each with what lives there. The rest of a layer's files stand at its door. */
export const ROOMS: Readonly<Partial<Record<LayerName, Readonly<Record<string, string>>>>> = {
  service: { settings: "every environment variable, as one table" },
  hosted: {
    pages: "what each page shows, as HTML that is complete without script",
    browser: "what runs in end users' browsers: the form's help, the frame, the widget",
    texts: "the ten languages",
  },
  actions: {
    runs: "trigger, read, cancel, run again, export, purge",
    reviews: "a person's decision: on a run's records, on a write in doubt",
    sessions: "hosted and embedded sessions, from creation to the sealed credential; sign-in at a target",
    credentials: "delete, unlock, test a login, rebind to other origins; tombstones",
    secrets: "account secrets: those of OAuth clients",
    "test-mode": "test accounts and the documents that are derived for them",
    keys: "API keys: who calls, how often",
    webhooks: "endpoints and their secrets; events signed, delivered, sent again",
    schedules: "runs by the clock: put, read, delete, fire",
    operators: "what the operator API shows and changes; operators' own sign-in",
    config: "documents: read, check, plan, apply, export",
    vault: "master keys: add, promote, rewrap",
    audit: "the audit log: close a second, export, verify",
    backups: "backups: write, verify, restore",
    upkeep: "what the chores and `latchkey doctor` look for",
  },
  engine: {
    login: "everything that sees a secret: open a credential, log in, send with a session",
    redaction: "what comes back from a target: secrets out, handles in",
    waiting: "lines, throttles, polls, the run's clock",
    outputs: "record sets written, sized and kept",
    local: "`latchkey run`: a run from files",
  },
  nodes: {
    types: "the node types, one file each",
    http: "requests of nodes: pages, files, writes, what a good answer is",
    browser: "steps of nodes in a browser: reads and writes",
    parse: "texts and files to records, in threads",
    records: "what nodes do with records: sort, join, group, spill",
    loop: "the steps of a loop",
  },
  strategies: {
    types: "the login types, one file each",
    http: "steps, sessions and checks of logins by requests",
    oauth: "authorization servers, tokens and their renewal",
  },
  answers: {
    browser: "what the steps of a browser have in common: locators, conditions, checks, failures",
    steps: "the steps of a browser, one file each",
  },
  contract: { operator: "schemas and types of every request and response of the operator API" },
  db: {
    migrations: "the schema, step by step, and what comes of it: `schema.sql`",
    backups: "all rows of one moment, out and in",
    connection: "pool, how migrations run, roles and grants, the clock, grouped statements",
    runs: "runs, steps, writes, leases, lines, workers, jobs",
    credentials: "sessions, credentials, tokens, the vault's keys",
    operators: "what the operator API reads and changes",
    signing: "rows that decide, and their signatures",
    webhooks: "endpoints, the outbox of events, deliveries and their attempts",
    schedules: "schedules and what became of their times",
    invariants: "what must hold in all rows",
    embedded: "the PostgreSQL that comes with Latchkey",
  },
  outbound: {
    browser:
      "browsers: found, started, held to the gate, ended; secrets into pages, logged-in state out of them",
  },
  domain: { labels: "the words that the dashboard and the command line show for states" },
};

/** Places smaller than a folder that a fence opens for; `within` names the place whose other rules hold too. */
export const SMALL_PLACES = [
  { name: "service/server.ts", within: "service", files: ["src/service/server.ts"] },
  { name: "service/metrics-server", within: "service", files: ["src/service/metrics-server.ts"] },
  { name: "service/api-processes", within: "service", files: ["src/service/api-processes.ts"] },
  { name: "service/settings", within: "service", files: ["src/service/settings/**"] },
  { name: "db/embedded", within: "db", files: ["src/db/embedded*", "src/db/embedded*/**"] },
  { name: "engine/login", within: "engine", files: ["src/engine/login/**"] },
  { name: "answers/browser", within: "answers", files: ["src/answers/browser/**"] },
  { name: "hosted/browser", within: "hosted", files: ["src/hosted/browser/**"] },
  { name: "worker/quarantine", within: "worker", files: ["src/worker/quarantine.ts"] },
  { name: "outbound/browser", within: "outbound", files: ["src/outbound/browser/**"] },
  {
    name: "outbound/browser/driver.ts",
    within: "outbound",
    files: ["src/outbound/browser/driver.ts"],
  },
  { name: "cli/demo.ts", within: "cli", files: ["src/cli/demo.ts"] },
  { name: "nodes/author.ts", within: "nodes", files: ["src/nodes/author.ts"] },
  { name: "lib/start-thread.ts", within: "lib", files: ["src/lib/start-thread.ts"] },
] as const;

type LayerName = (typeof LAYERS)[number]["folder"];

export type Place = (typeof LAYERS)[number]["folder"] | (typeof SMALL_PLACES)[number]["name"];

/** Something that only some places may use. */
export type Fence = {
  /** Shown in the lint message and the documentation. */
  what: string;
  why: string;
  /** Where it is allowed (`only`), or everywhere but there (`except`). */
  where: { only: readonly Place[] } | { except: readonly Place[] };
  /** Module specifiers, as regular expressions. */
  modules?: readonly string[];
  /** Named imports of otherwise free modules. */
  names?: readonly { modules: string; names: readonly string[] }[];
  /** Places that may import the types of the modules and names, but nothing that exists at run time. */
  typesIn?: readonly Place[] | "everywhere";
  globals?: readonly string[];
  properties?: readonly { object: string; property: string }[];
};

const SERVER_PLACES = ["api", "hosted", "operator", "service/server.ts"] as const;

const CIPHER_NAMES = (
  "createCipheriv createDecipheriv Cipheriv Decipheriv publicEncrypt publicDecrypt privateEncrypt privateDecrypt " +
  "createECDH createDiffieHellman diffieHellman encapsulate decapsulate default webcrypto subtle"
).split(" ");

const RANDOM_NAMES =
  "randomBytes randomInt randomUUID randomUUIDv7 randomFill randomFillSync getRandomValues".split(" ");

export const FENCES: readonly Fence[] = [
  {
    what: "the PostgreSQL driver (pg)",
    why: "db/ holds the only SQL in the service",
    where: { only: ["db"] },
    modules: ["^pg($|[-/])"],
  },
  {
    what: "the modules that open credentials",
    why: "an opened secret reaches the login and nothing else",
    where: { only: ["engine/login"] },
    modules: ["^(\\./|#engine/)(login/)?open-credential"],
  },
  {
    what: "graphile-worker",
    why: "chores are jobs: added next to the SQL, done by the worker",
    where: { only: ["worker", "db"] },
    modules: ["^graphile-worker($|/)"],
  },
  {
    what: "undici and other clients (playwright, proxy-chain, nodemailer)",
    why: "every request to another system passes the egress gate",
    where: { only: ["outbound"] },
    modules: ["^(undici|playwright|proxy-chain|nodemailer)($|/)"],
  },
  {
    what: "the browser's driver (playwright-core)",
    why: "every page passes the egress gate; its errors have what was typed",
    where: { only: ["outbound"] },
    modules: ["^playwright-core($|/)"],
    typesIn: ["answers/browser"],
  },
  {
    what: "sockets (node:http, https, http2, net, tls, dns, dgram)",
    why: "every request to another system passes the egress gate; the port of the metrics only answers",
    where: { only: ["outbound", "service/metrics-server"] },
    modules: ["^(node:)?(http|https|http2|net|tls|dns|dgram)($|/)"],
    typesIn: SERVER_PLACES,
  },
  {
    what: "fetch and the other network globals",
    why: "every request to another system passes the egress gate",
    // What runs in end users' browsers asks our own service.
    where: { only: ["outbound", "hosted/browser"] },
    globals: ["fetch", "WebSocket", "EventSource", "XMLHttpRequest"],
    properties: [{ object: "globalThis", property: "fetch" }],
  },
  {
    what: "jose",
    why: "vault/ is the barrier: nothing else seals or opens",
    where: { only: ["vault"] },
    modules: ["^jose($|/)"],
  },
  {
    what: "ciphers and key agreement of node:crypto (hashes and random bytes are free)",
    why: "vault/ is the barrier: nothing else seals or opens",
    where: { only: ["vault"] },
    names: [{ modules: "^(node:)?crypto$", names: CIPHER_NAMES }],
    properties: [{ object: "crypto", property: "subtle" }],
  },
  {
    what: "the AWS SDK",
    why: "object stores are behind blobs/, key services behind vault/",
    where: { only: ["blobs", "vault"] },
    modules: ["^(@aws-sdk|@smithy)/"],
  },
  {
    what: "jsonata",
    why: "authors' expressions run only in threads that can be killed",
    where: { only: ["expressions"] },
    modules: ["^jsonata($|/)"],
  },
  {
    what: "typebox",
    why: "its 370 modules were an eighth of a start: lib/type.ts builds the same schemas, and author.ts gives it to operators' own files",
    where: { only: ["nodes/author.ts"] },
    modules: ["^typebox($|/)"],
    typesIn: "everywhere",
  },
  {
    what: "ajv",
    why: "its 84 modules were a twentieth of a start: domain/open-ajv.ts loads them when a schema needs them",
    where: { only: [] },
    modules: ["^ajv($|[-/])"],
    typesIn: "everywhere",
  },
  {
    what: "yaml",
    why: "its 72 modules were a thirtieth of a start: actions/config/open-yaml.ts loads them when a document is read",
    where: { only: [] },
    modules: ["^yaml($|/)"],
    typesIn: "everywhere",
  },
  {
    what: "fastify and its plugins",
    why: "HTTP ends where the actions begin",
    where: { only: SERVER_PLACES },
    modules: ["^fastify($|/)", "^@fastify/"],
  },
  {
    what: "process.env",
    why: "every setting is one entry of the table in service/settings/; the browser driver's own variables are removed before it is loaded",
    where: { only: ["service/settings", "outbound/browser/driver.ts"] },
    names: [{ modules: "^(node:)?process$", names: ["env", "loadEnvFile", "default"] }],
    properties: [
      { object: "process", property: "env" },
      { object: "process", property: "loadEnvFile" },
    ],
  },
  {
    what: "child processes",
    why: "only the embedded database, a worker's quarantine, the processes of the api role and browsers are programs that we start",
    where: {
      only: ["db/embedded", "worker/quarantine", "outbound/browser", "service/api-processes"],
    },
    modules: ["^(node:)?(child_process|cluster)$"],
  },
  {
    what: "threads (Worker of node:worker_threads)",
    why: "a thread starts from the compile cache, under the limits of its caller",
    where: { only: ["lib/start-thread.ts"] },
    names: [{ modules: "^(node:)?worker_threads$", names: ["Worker", "default"] }],
    typesIn: "everywhere",
  },
  {
    what: "the framework's own idea of who calls (request.ip, hostname, protocol)",
    why: "who calls is services.clientOf, and where we are is services.publicUrl: neither is what a caller says",
    where: { only: [] },
    properties: ["ip", "ips", "host", "hostname", "protocol"].map((property) => ({
      object: "request",
      property,
    })),
  },
  {
    what: "Date",
    why: "business time is the database's app_now(), which tests can move (the type Date is free)",
    where: { except: ["domain", "actions", "engine"] },
    globals: ["Date"],
    properties: [{ object: "globalThis", property: "Date" }],
  },
  {
    what: "randomness",
    why: "domain/ is meaning without I/O, clock or randomness",
    where: { except: ["domain"] },
    names: [{ modules: "^(node:)?crypto$", names: RANDOM_NAMES }],
    globals: ["crypto"],
    properties: [{ object: "Math", property: "random" }],
  },
  {
    what: "files, threads and timers",
    why: "domain/ is meaning without I/O, clock or randomness",
    where: { except: ["domain"] },
    modules: ["^(node:)?(fs|os|process|readline|repl|timers|perf_hooks|worker_threads|stream)($|/)"],
    globals: ["process", "performance", "setTimeout", "setInterval", "setImmediate"],
  },
  {
    what: "examples/",
    why: "the product does not need its examples; `latchkey demo` plays them",
    where: { only: ["cli/demo.ts"] },
    modules: ["^#examples/"],
  },
  {
    what: "node:vm",
    why: "it is no sandbox",
    where: { only: [] },
    modules: ["^(node:)?vm$"],
  },
  {
    what: "console",
    why: "the log is structured and redacts; only the command line prints",
    where: { only: ["cli"] },
    globals: ["console"],
  },
];
