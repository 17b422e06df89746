import { argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import type { Secret } from "./secret.ts";

const derive = promisify(argon2);
/** OWASP's second choice of parameters; 36 to 46 ms on the machine they were measured on. */
const PARAMETERS = { parallelism: 1, tagLength: 32, memory: 19_456, passes: 2 } as const;
const SALT_BYTES = 16;

/** The secret of argon2 (RFC 9106, 3.1): without it a hash can be neither made nor tried. */
export type PasswordKey = Secret<Buffer>;

const encode = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");
/** What a PHC string says of the secret: that there is one. */
const KEY_ID = encode(Buffer.from("signing-key"));

/** An argon2id hash in PHC form, with its parameters, so that they can change later. */
export async function hashPassword(password: string, key: PasswordKey): Promise<string> {
  const nonce = randomBytes(SALT_BYTES);
  const tag = await derive("argon2id", { message: password, nonce, secret: key.reveal(), ...PARAMETERS });
  return `${PREFIX}${encode(nonce)}$${encode(tag)}`;
}

const PREFIX = `$argon2id$v=19$m=${PARAMETERS.memory},t=${PARAMETERS.passes},p=${PARAMETERS.parallelism},keyid=${KEY_ID}$`;
const PHC =
  /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)(?:,keyid=([A-Za-z0-9+/]+))?\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/**
 * In constant time for hashes of one length. False for a text that is no hash of ours. A hash from before there was a key is taken
 * as it is: its row says that this installation has written it.
 */
export async function verifyPassword(password: string, hash: string, key: PasswordKey): Promise<boolean> {
  const match = PHC.exec(hash);
  if (!match || (match[4] !== undefined && match[4] !== KEY_ID)) return false;
  const wanted = Buffer.from(match[6] ?? "", "base64");
  const tag = await derive("argon2id", {
    message: password,
    nonce: Buffer.from(match[5] ?? "", "base64"),
    ...(match[4] === undefined ? {} : { secret: key.reveal() }),
    memory: Number(match[1]),
    passes: Number(match[2]),
    parallelism: Number(match[3]),
    tagLength: wanted.length,
  });
  return tag.length === wanted.length && timingSafeEqual(tag, wanted);
}

/** Whether a hash was made without the key, or with other parameters than today's: then it is made anew at the next sign-in. */
export function isOutdatedHash(hash: string): boolean {
  return !hash.startsWith(PREFIX);
}

/** Half of the threads that files and name look-ups of this process need as well (docs/decisions/0022). */
const AT_ONCE = 2;
/** Who waits at most: those who are known; of one network of strangers, and of all. */
const WAITING_MAX = { known: 50, network: 4, strangers: 100 } as const;

/** Too many wait already: the caller is told to come again. */
export class PasswordsBusy extends Error {
  override readonly name = "PasswordsBusy";

  constructor() {
    super("too many passwords are being checked");
  }
}

/** Whose turn it is when there are more than can be checked: who is known comes first, and networks of strangers take turns. */
export type PasswordTurn = "known" | { readonly network: string };

type Waiter = PromiseWithResolvers<void>;

/** Checks passwords of a process, a few at once: each takes 19 MiB and a thread for its time. */
export class Passwords {
  readonly #known: Waiter[] = [];
  /** In the order of the next turns. */
  readonly #strangers = new Map<string, Waiter[]>();
  #strangersWaiting = 0;
  #running = 0;
  #derived = 0;
  #dummy: Promise<string> | null = null;
  readonly #key: PasswordKey;

  constructor(key: PasswordKey) {
    this.#key = key;
  }

  /** How many hashes were derived so far: a name that nobody has costs as many as one that somebody has. */
  get derived(): number {
    return this.#derived;
  }

  /** A caller that asks now must wait. */
  get isBusy(): boolean {
    return this.#running >= AT_ONCE;
  }

  /** `hash` null: nobody has that name. The same work is done, and the answer is no. Throws PasswordsBusy. */
  async verify(password: string, hash: string | null, turn: PasswordTurn): Promise<boolean> {
    this.#dummy ??= hashPassword("nobody has this password", this.#key);
    const expected = hash ?? (await this.#dummy);
    return (
      (await this.#inTurn(turn, async () => await verifyPassword(password, expected, this.#key))) &&
      hash !== null
    );
  }

  /** Throws PasswordsBusy. */
  async hash(password: string): Promise<string> {
    return await this.#inTurn("known", async () => await hashPassword(password, this.#key));
  }

  async #inTurn<T>(turn: PasswordTurn, work: () => Promise<T>): Promise<T> {
    if (this.isBusy) await this.#wait(turn);
    else this.#running++;
    this.#derived++;
    try {
      return await work();
    } finally {
      // The place is handed on, so that nobody overtakes who waits.
      const next = this.#known.shift() ?? this.#nextStranger();
      if (next) next.resolve();
      else this.#running--;
    }
  }

  async #wait(turn: PasswordTurn): Promise<void> {
    const waiter: Waiter = Promise.withResolvers();
    if (turn === "known") {
      if (this.#known.length >= WAITING_MAX.known) throw new PasswordsBusy();
      this.#known.push(waiter);
    } else this.#line(turn.network, waiter);
    await waiter.promise;
  }

  #line(network: string, waiter: Waiter): void {
    const line = this.#strangers.get(network) ?? [];
    if (line.length >= WAITING_MAX.network) throw new PasswordsBusy();
    if (this.#strangersWaiting >= WAITING_MAX.strangers && !(line.length === 0 && this.#shortenLongest()))
      throw new PasswordsBusy();
    line.push(waiter);
    this.#strangersWaiting++;
    this.#strangers.set(network, line);
  }

  /** Who comes from a network that has none waiting takes the place of the last one of a network with several. */
  #shortenLongest(): boolean {
    let longest: Waiter[] = [];
    for (const line of this.#strangers.values()) if (line.length > longest.length) longest = line;
    if (longest.length < 2) return false;
    longest.pop()?.reject(new PasswordsBusy());
    this.#strangersWaiting--;
    return true;
  }

  #nextStranger(): Waiter | undefined {
    const [next] = this.#strangers;
    if (next === undefined) return undefined;
    const [network, line] = next;
    const waiter = line.shift();
    this.#strangersWaiting--;
    this.#strangers.delete(network);
    if (line.length > 0) this.#strangers.set(network, line);
    return waiter;
  }
}
