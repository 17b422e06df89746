import type { OperatorAnswer, OperatorInput, OperatorOperation } from "#contract/operator/operation.ts";
import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import type { ServiceAnswer, ServiceClient } from "#outbound/service-client.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, tell } from "./output.ts";

/** What an operation takes; parts that it does not have are left out. */
type Input<O extends OperatorOperation> = Partial<OperatorInput<O>>;

/** The service of another machine, by its operator API. */
export interface RemoteService {
  readonly url: string;
  /** Throws CommandFailed with the service's own message. */
  call<O extends OperatorOperation>(operation: O, input?: Input<O>): Promise<OperatorAnswer<O>>;
  /** The same for an answer that is a file. */
  download<O extends OperatorOperation>(operation: O, input?: Input<O>): Promise<AsyncIterable<Uint8Array>>;
}

/** Does the work on the service that LATCHKEY_URL or `--url` names, or else on this machine's database. */
export async function onService<T>(
  composition: Composition,
  work: {
    readonly here: (db: Database) => Promise<T>;
    readonly remote: (service: RemoteService) => Promise<T>;
  },
): Promise<T> {
  return composition.isRemote()
    ? await onRemote(composition, work.remote)
    : await composition.withDatabase(work.here);
}

/** For a command that has found out that it works on the service of another machine. */
export async function onRemote<T>(
  composition: Composition,
  work: (service: RemoteService) => Promise<T>,
): Promise<T> {
  const client = await composition.openServiceClient();
  try {
    return await work(remoteService(client));
  } finally {
    await client.close();
  }
}

export function remoteService(client: ServiceClient): RemoteService {
  const send = async (
    operation: OperatorOperation,
    input: Input<OperatorOperation>,
  ): Promise<ServiceAnswer> => {
    const method = operation.method.toUpperCase() as "GET" | "POST" | "DELETE";
    // A POST always has a body, and an operation without one takes an empty object.
    const body = operation.body ? (input.body ?? {}) : undefined;
    const answer = await client.send({ method, path: pathOf(operation, input), body });
    if (answer.status >= 400) throw await failureOf(client.url, answer);
    return answer;
  };
  return {
    url: client.url,
    call: async <O extends OperatorOperation>(operation: O, input: Input<O> = {}) => {
      const answer = await send(operation, input as Input<OperatorOperation>);
      if (answer.status === 204) return undefined as OperatorAnswer<O>;
      if (!answer.contentType.startsWith(JSON_TYPE)) throw foreign(client.url, answer);
      // The service has written it by the same schema.
      return JSON.parse(await textOf(answer)) as OperatorAnswer<O>;
    },
    download: async (operation, input = {}) =>
      (await send(operation, input as Input<OperatorOperation>)).bytes,
  };
}

function pathOf({ path }: OperatorOperation, { params = {}, query = {} }: Input<OperatorOperation>): string {
  const filled = path.replace(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(params[name] ?? ""));
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? filled : `${filled}?${new URLSearchParams(given).toString()}`;
}

async function textOf({ bytes }: ServiceAnswer): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

const JSON_TYPE = "application/json";

const foreign = (url: string, { status }: ServiceAnswer): CommandFailed =>
  new CommandFailed(
    `${url} answered ${status}, and not as a Latchkey service does. Check LATCHKEY_URL, or --url.`,
  );

interface Detail {
  readonly message?: string;
}

/** The service's message; its details go to standard error first, as those of a local command do. */
async function failureOf(url: string, answer: ServiceAnswer): Promise<CommandFailed> {
  if (!answer.contentType.startsWith(JSON_TYPE)) return foreign(url, answer);
  let message: string | undefined;
  let details: readonly Detail[] = [];
  try {
    const body = JSON.parse(await textOf(answer)) as {
      readonly error?: { readonly message?: string; readonly details?: readonly Detail[] };
    };
    ({ message, details = [] } = body.error ?? {});
  } catch {
    return foreign(url, answer);
  }
  if (message === undefined) return foreign(url, answer);
  for (const detail of details)
    if (detail.message !== undefined && detail.message !== message) tell(detail.message);
  return new CommandFailed(message);
}

/** Every item of a list that is answered in pages. */
export async function listAll<Item>(
  readPage: (page: {
    readonly limit: number;
    readonly cursor?: string;
  }) => Promise<{ readonly items: readonly Item[]; readonly next_cursor: string | null }>,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const page = await readPage({ limit: limits.pageItemsMax, ...(cursor === "" ? {} : { cursor }) });
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return items;
}
