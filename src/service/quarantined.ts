/**
 * A process that executes suspects for the service that started it (`worker/quarantine.ts`), one at a time. It ends with the
 * service, after its last suspect, or when a suspect kills it.
 */
import type { QuarantineOrder, QuarantineState } from "#worker/quarantine.ts";

const REPORT_EVERY_MS = 1_000;

const told = Promise.withResolvers<void>();
process.once("disconnect", () => told.resolve());
// The service receives these signals too, and ends this process in an orderly way, so that it doesn't count against the run.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

const order = await new Promise<QuarantineOrder>((resolve) => process.once("message", resolve));
const [{ openLog }, { readConfig, readNodeFiles, nodeOptions }, { guardProcess }, { startQuarantined }] =
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
const worker = await startQuarantined(config, log, order.source);
const report = (): void => {
  const state: QuarantineState = { isFree: worker.isFree() };
  if (process.connected) process.send?.(state, () => {});
};
report();
const reporting = setInterval(report, REPORT_EVERY_MS);
await Promise.race([told.promise, worker.idle]);
clearInterval(reporting);
await worker.stop();
if (process.connected) process.disconnect();
