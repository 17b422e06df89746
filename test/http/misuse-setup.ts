import { connect, openCaller, type Caller } from "../caller.ts";
import { install, type Installation, type ServiceProcess } from "../service.ts";

/** How many inputs the echoing Blueprint has: that many strings go through one run. */
export const ECHO_INPUTS = 60;

const ECHO_FIELDS = Array.from({ length: ECHO_INPUTS }, (_, index) => `text_${index}`);

const DOCUMENTS = [
  `account: misuse
name: Misuse
allowed_origins: [http://localhost:3000]
rate_limit: off`,
  `strategy: strat_misuse
account: misuse
name: Anything
hosts: [http://127.0.0.1:9]
fields:
  - { key: token, label: Token, type: password, required: true }
login: { type: bearer, token: token }`,
  // Gives its inputs back as they came, without any target.
  `blueprint: echo
account: misuse
name: Echo
metadata:
  - { name: note }
nodes:
  - { id: one, type: input, refKey: one, default: [{ n: 1 }] }
${ECHO_FIELDS.map((name) => `  - { id: ${name}, type: input, refKey: ${name} }`).join("\n")}
  - { id: rows, type: parse, from: one, format: json }
  - id: echoed
    type: map
    from: rows
    fields:
${ECHO_FIELDS.map((name) => `      ${name}: $inputs.${name}`).join("\n")}
  - { id: out, type: output, refKey: echo, from: echoed }`,
];

export interface Misused extends AsyncDisposable {
  readonly installation: Installation;
  readonly service: ServiceProcess;
  readonly key: string;
  readonly caller: Caller;
  /** A credential of the account. */
  readonly credentialId: string;
}

/** A service with an account whose one Blueprint needs no target. */
export async function openMisused(environment: Record<string, string> = {}): Promise<Misused> {
  const installation = await install(environment);
  try {
    await installation.apply(...DOCUMENTS);
    const key = await installation.createKey("misuse");
    const service = await installation.serveProcess();
    const caller = openCaller(service.url, key);
    const credentialId = await connect(caller, "strat_misuse", { token: "t" });
    return {
      installation,
      service,
      key,
      caller,
      credentialId,
      [Symbol.asyncDispose]: installation[Symbol.asyncDispose],
    };
  } catch (error) {
    await installation[Symbol.asyncDispose]();
    throw error;
  }
}
