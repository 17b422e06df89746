import type { Duplex } from "node:stream";
import type pg from "pg";

type Query = { readonly name?: string; readonly text: string };
type Answer = Promise<pg.QueryResult>;

/** Parts of the driver's client that its types leave out. */
interface ClientParts {
  readonly processID: number;
  readonly connection: { readonly stream: Duplex };
}

/** Connections that are lent to one transaction or statement at a time. */
export interface StageConnections {
  /** How many are lent. */
  lent(): number;
  /** The backends that may wait for locks of each other; none while only one has any. */
  listContenders(): readonly number[];
  /** Plans of the statements before are void. */
  forgetPlans(): void;
  end(): void;
}

/** A real connection, with the statements that it has planned. */
interface Connection {
  readonly client: pg.PoolClient;
  readonly planned: Set<string>;
  isInTransaction: boolean;
  /** Statements without an answer. */
  asked: number;
}

/**
 * Makes a pool lend its connections by what is asked first: a statement goes to a connection that has planned it, if one is free, so that most
 * are planned once a simulation. BEGIN therefore waits for the first statement, and leaves with it.
 */
export function lendByPlan(pool: pg.Pool): StageConnections {
  const connect = pool.connect.bind(pool) as () => Promise<pg.PoolClient>;
  const all: Connection[] = [];
  const free = new Set<Connection>();
  let lent = 0;
  const take = (plan: string): Connection | Promise<Connection> => {
    // In the order in which they were opened: which one was returned last says nothing of a seed.
    const inOrder = all.filter((each) => free.has(each));
    const chosen = inOrder.find(({ planned }) => planned.has(plan)) ?? inOrder[0];
    if (chosen === undefined) return open();
    free.delete(chosen);
    return chosen;
  };
  const open = async (): Promise<Connection> => {
    const client = await connect();
    const connection = { client, planned: new Set<string>(), isInTransaction: false, asked: 0 };
    all.push(connection);
    return connection;
  };
  const giveBack = (connection: Connection | null): void => {
    lent--;
    if (connection === null) return;
    connection.isInTransaction = false;
    free.add(connection);
  };
  const lend = async (): Promise<Loan> => {
    lent++;
    return await Promise.resolve(new Loan(take, giveBack));
  };
  pool.connect = lend as unknown as typeof pool.connect;
  return {
    lent: () => lent,
    listContenders: () => {
      const some = all.filter(({ isInTransaction, asked }) => isInTransaction || asked > 0);
      return some.length < 2 ? [] : some.map(({ client }) => (client as unknown as ClientParts).processID);
    },
    forgetPlans: () => {
      for (const { planned } of all) planned.clear();
    },
    end: () => {
      for (const { client } of all) client.release();
    },
  };
}

/** What the product's pool sees of a connection: which one it is shows when something is asked. */
class Loan {
  readonly #take: (plan: string) => Connection | Promise<Connection>;
  readonly #giveBack: (connection: Connection | null) => void;
  #connection: Connection | null = null;
  #opening: Promise<Connection> | null = null;
  #mustBegin = false;

  constructor(
    take: (plan: string) => Connection | Promise<Connection>,
    giveBack: (connection: Connection | null) => void,
  ) {
    this.#take = take;
    this.#giveBack = giveBack;
  }

  /** Sent at once when there is a connection: what is asked first arrives first. */
  query(asked: string | Query): Answer {
    const query = typeof asked === "string" ? { text: asked } : asked;
    if (this.#connection !== null) return send(this.#connection, query);
    if (this.#opening !== null) return this.#opening.then((opened) => send(opened, query));
    if (query.text === "begin") {
      this.#mustBegin = true;
      return answer("BEGIN");
    }
    if (query.text === "commit" || query.text === "rollback") return answer(query.text.toUpperCase());
    const taken = this.#take(planOf(query));
    if (!(taken instanceof Promise)) return this.#sendFirst(taken, query);
    this.#opening = taken;
    return taken.then((opened) => this.#sendFirst(opened, query));
  }

  #sendFirst(connection: Connection, query: Query): Answer {
    this.#connection = connection;
    if (!this.#mustBegin) return send(connection, query);
    connection.isInTransaction = true;
    const { stream } = (connection.client as unknown as ClientParts).connection;
    stream.cork();
    // An error of it is one of the connection, which the statement says again.
    connection.client.query("begin").catch(() => {});
    const answered = send(connection, query);
    stream.uncork();
    return answered;
  }

  release(): void {
    this.#giveBack(this.#connection);
  }
}

async function send(connection: Connection, query: Query): Answer {
  connection.planned.add(planOf(query));
  connection.asked++;
  try {
    return await connection.client.query(query);
  } finally {
    connection.asked--;
  }
}

/**
 * Makes a pool send all statements over one connection, together if they are asked together. Returns how it is given back. Not for
 * transactions.
 */
export async function shareOne(pool: pg.Pool): Promise<() => void> {
  const client = await pool.connect();
  const shared = { query: client.query.bind(client), release: () => {} };
  pool.connect = (async () => await Promise.resolve(shared)) as unknown as typeof pool.connect;
  return () => client.release();
}

const planOf = ({ name, text }: Query): string => name ?? text;

const answer = async (command: string): Answer => await Promise.resolve({ command, rows: [] } as never);
