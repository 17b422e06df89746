/**
 * One of the processes of `serve --processes` (`api-processes.ts` starts it): the api role, on the port that they share. It ends when
 * the process that started it says so, after a drain, and at once when that process is gone.
 */
import cluster from "node:cluster";
import type { ApiOrder, ApiReport, ApiWord } from "./api-processes.ts";

type ListenError = NodeJS.ErrnoException & { readonly address?: string; readonly port?: number };

const tell = (report: ApiReport): void => {
  if (process.connected) process.send?.(report, () => {});
};
// The first process receives these signals too, and drains this one.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

const told = Promise.withResolvers<void>();
let databaseGoneForMs = 0;
const order = await new Promise<ApiOrder>((resolve) => process.once("message", resolve));
process.on("message", (word: ApiWord) => {
  if (word === "stop") told.resolve();
  else databaseGoneForMs = word.databaseGoneForMs;
});

try {
  const [{ openLog }, { readConfig, nodeOptions, readNodeFiles }, { guardProcess }, { startApiProcess }] =
    await Promise.all([
      import("#lib/log.ts"),
      import("./settings/settings.ts"),
      import("./guard-process.ts"),
      import("./assemble.ts"),
    ]);
  const config = readConfig(order.environment);
  const log = openLog({ level: config.logLevel, format: config.logFormat });
  guardProcess([...process.execArgv, ...nodeOptions(order.environment)], log);
  const files = readNodeFiles(order.environment);
  if (files.length > 0) await (await import("#nodes/registry.ts")).addNodeFiles(files);
  const api = await startApiProcess(config, log, order, () => databaseGoneForMs);
  tell({ url: api.url });
  await told.promise;
  await api.stop();
  // Ends the process: nothing else keeps it.
  cluster.worker?.disconnect();
} catch (error) {
  const { message, code, address, port } = error as ListenError;
  tell({ message, code, address, port });
  process.exitCode = 1;
  cluster.worker?.disconnect();
}
