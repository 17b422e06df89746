/**
 * One of the processes of `serve --processes` (`api-processes.ts` starts it): the api role, on the port that they share. It ends when
 * the process that started it says so, after a drain, and at once when that process is gone.
 */
import type { ApiOrder, ApiReport, ApiWord } from "./api-processes.ts";

type ListenError = NodeJS.ErrnoException & { readonly address?: string; readonly port?: number };

const tell = async (report: ApiReport): Promise<void> =>
  await new Promise((resolve) => {
    if (process.connected) process.send?.(report, () => resolve());
  });
/** Node ends a process of a cluster that is no longer connected. */
const end = (): void => process.disconnect();
// The first process receives these signals too, and drains this one.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

const ordered = Promise.withResolvers<ApiOrder>();
const told = Promise.withResolvers<void>();
let databaseGoneForMs = 0;
// One listener for all messages: when two have come before a `once`, Node gives it the first and nobody the second.
process.on("message", (message: ApiOrder | ApiWord) => {
  if (message === "stop") told.resolve();
  else if ("processes" in message) ordered.resolve(message);
  else ({ databaseGoneForMs } = message);
});
const order = await ordered.promise;

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
  await tell({ url: api.url });
  await told.promise;
  await api.stop();
  end();
} catch (error) {
  const { message, code, address, port } = error as ListenError;
  await tell({ message, code, address, port });
  end();
}
