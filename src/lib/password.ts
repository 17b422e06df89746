import { argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

const derive = promisify(argon2);
/** OWASP's second choice of parameters; 36 to 46 ms on the machine they were measured on (design, page 7, 0.3). */
const PARAMETERS = { parallelism: 1, tagLength: 32, memory: 19_456, passes: 2 } as const;
const SALT_BYTES = 16;

/** An argon2id hash in PHC form, with its parameters, so that they can change later. */
export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(SALT_BYTES);
  const tag = await derive("argon2id", { message: password, nonce, ...PARAMETERS });
  const { memory, passes, parallelism } = PARAMETERS;
  const encode = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${encode(nonce)}$${encode(tag)}`;
}

/** In constant time for hashes of one length. False for a text that is no hash of ours. */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(hash);
  if (!match) return false;
  const wanted = Buffer.from(match[5] ?? "", "base64");
  const tag = await derive("argon2id", {
    message: password,
    nonce: Buffer.from(match[4] ?? "", "base64"),
    memory: Number(match[1]),
    passes: Number(match[2]),
    parallelism: Number(match[3]),
    tagLength: wanted.length,
  });
  return tag.length === wanted.length && timingSafeEqual(tag, wanted);
}

/** Whether a hash was made with other parameters than today's: then it is made anew at the next sign-in. */
export function isOutdatedHash(hash: string): boolean {
  const { memory, passes, parallelism } = PARAMETERS;
  return !hash.startsWith(`$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$`);
}

/** Half of the threads that files and name look-ups of this process need as well (design, page 6, 5.10 says at most four). */
const AT_ONCE = 2;
const WAITING_MAX = 50;

/** Too many wait already: whoever asks is told to come again. */
export class PasswordsBusy extends Error {
  override readonly name = "PasswordsBusy";
}

/** Checks passwords of a process, a few at once: each takes 19 MiB and a thread for its time. */
export class Passwords {
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #derived = 0;
  #dummy: Promise<string> | null = null;

  /** How many hashes were derived so far: a name that nobody has costs as many as one that somebody has. */
  get derived(): number {
    return this.#derived;
  }

  /** `hash` null: nobody has that name. The same work is done, and the answer is no. Throws PasswordsBusy. */
  async verify(password: string, hash: string | null): Promise<boolean> {
    this.#dummy ??= hashPassword("nobody has this password");
    const expected = hash ?? (await this.#dummy);
    return (await this.#inTurn(async () => await verifyPassword(password, expected))) && hash !== null;
  }

  /** Throws PasswordsBusy. */
  async hash(password: string): Promise<string> {
    return await this.#inTurn(async () => await hashPassword(password));
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= AT_ONCE) {
      if (this.#waiting.length >= WAITING_MAX)
        throw new PasswordsBusy("too many passwords are being checked");
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#running++;
    this.#derived++;
    try {
      return await work();
    } finally {
      // The place is handed on, so that nobody overtakes who waits.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}
