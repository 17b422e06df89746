import { createTestDatabase } from "../test/database.ts";
import { startProgram, type Program } from "./processes.ts";
import type { Contender } from "./runs-drain.ts";
import type { EngineName, Work } from "./runs-engine.ts";
import type { Latencies } from "./runs-latency.ts";
import type { BenchServer } from "./server.ts";
import type { PeerAsk } from "./runs-peer-process.ts";

interface EngineTables {
  /** Runs that are over; `$1` is how many were enqueued. */
  readonly finished: string;
  readonly clear: string;
  readonly analyze: string;
}

const TABLES: Record<EngineName, EngineTables> = {
  sql: {
    finished: "select count(*) as total from limit_run where status = 'completed' and $1::int > 0",
    clear: "truncate limit_run, limit_step",
    analyze: "analyze limit_run, limit_step",
  },
  "graphile-worker": {
    finished: "select $1::int - count(*) as total from graphile_worker._private_jobs",
    clear: "truncate graphile_worker._private_jobs",
    analyze: "analyze graphile_worker._private_jobs",
  },
  "pg-boss": {
    finished: "select count(*) as total from pgboss.job where state = 'completed' and $1::int > 0",
    clear: "truncate pgboss.job",
    analyze: "analyze pgboss.job",
  },
  dbos: {
    finished: "select count(*) as total from dbos.workflow_status where status = 'SUCCESS' and $1::int > 0",
    clear: "truncate dbos.workflow_status cascade",
    analyze: "analyze dbos.workflow_status",
  },
};

export interface PeerOptions {
  readonly engine: EngineName;
  readonly title: string;
  readonly work: Work;
  readonly targetUrl: string;
  readonly concurrency: number;
  readonly server: BenchServer;
}

/** An engine in a database of its own on the same server, with worker processes of its own. */
export async function openPeer(options: PeerOptions): Promise<Contender & AsyncDisposable> {
  const { engine, title, work, targetUrl, concurrency, server } = options;
  const database = await createTestDatabase({ max: 2 });
  const { connectionString, db } = database;
  const tables = TABLES[engine];
  let enqueued = 0;
  const open = async (): Promise<Program> => {
    // DBOS uses its driver in a way that the driver warns of, in every process anew.
    const program = startProgram("./runs-peer-process.ts", { options: ["--no-deprecation"] });
    await ask(program, { want: "open", engine, connectionString, work, targetUrl, concurrency });
    return program;
  };
  const clear = async (): Promise<void> => {
    await db.query(tables.clear);
    await db.query(tables.analyze);
  };
  return {
    id: `${engine} ${work.steps} ${work.gets}`,
    title,
    db,
    server,
    prefill: async (count) => {
      await using program = await open();
      await clear();
      await ask(program, { want: "prefill", count });
      await db.query(tables.analyze);
      enqueued = count;
    },
    startWorkers: async (count) => {
      const programs = await Promise.all(Array.from({ length: count }, open));
      await Promise.all(programs.map(async (program) => await ask(program, { want: "work" })));
      return {
        pids: programs.map(({ pid }) => pid),
        [Symbol.asyncDispose]: async () =>
          void (await Promise.all(programs.map(async (program) => await program[Symbol.asyncDispose]()))),
      };
    },
    finished: async () => {
      const [row] = await db.query<{ total: number }>(tables.finished, [enqueued]);
      return row?.total ?? 0;
    },
    runLightly: async (rate, seconds) => {
      await using program = await open();
      await clear();
      return await program.ask<Latencies>({ want: "light", rate, seconds } satisfies PeerAsk);
    },
    [Symbol.asyncDispose]: async () => await database.drop(),
  };
}

async function ask(program: Program, what: PeerAsk): Promise<void> {
  await program.ask(what);
}
