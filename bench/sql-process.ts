/** The limit of the database: the SQL of a scenario from one process with as many callers as the load has connections. */
import { openSql, type SqlWork } from "./sql-rows.ts";

export interface SqlJob extends SqlWork {
  readonly seconds: number;
}

async function measure(job: SqlJob): Promise<{ calls: number; perSecond: number }> {
  const sql = openSql(job);
  const beganMs = performance.now();
  const endMs = beganMs + job.seconds * 1_000;
  let calls = 0;
  await Promise.all(
    Array.from({ length: job.callers }, async () => {
      while (performance.now() < endMs) {
        await sql.call();
        calls++;
      }
    }),
  );
  const seconds = (performance.now() - beganMs) / 1_000;
  await sql.end();
  return { calls, perSecond: calls / seconds };
}

process.on("message", (job: SqlJob) => {
  void measure(job).then((measured) => process.send?.(measured));
});
