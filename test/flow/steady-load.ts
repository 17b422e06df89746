import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../eventually.ts";

/** An answer, or the words of the error that came instead. */
export type LoadAnswer = { readonly status: number | undefined; readonly text: string } | string;

export interface LoadClients extends Disposable {
  send(
    method: "GET" | "POST" | "DELETE",
    path: string,
    body?: string,
    headers?: Readonly<Record<string, string>>,
  ): Promise<LoadAnswer>;
}

/** Many requests a second at little cost: clients and services share the cores. */
export function openLoadClients(url: string, key: string): LoadClients {
  const agent = new Agent({ keepAlive: true });
  const { hostname, port } = new URL(url);
  const own = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return {
    send: async (method, path, body, headers = {}) =>
      await new Promise<LoadAnswer>((resolve) => {
        const options = { agent, hostname, port, method, path, headers: { ...own, ...headers } };
        const asked = request(options, (answer) => {
          let text = "";
          answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          answer.on("end", () => resolve({ status: answer.statusCode, text }));
          answer.on("error", (error) => resolve(String(error)));
        });
        asked.on("error", (error) => resolve(String(error)));
        asked.end(body);
      }),
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** Tells what was answered instead of what was wanted; undefined: it was. */
export type LoadRequest = (number: number) => Promise<string | undefined>;

export interface SteadyLoad extends AsyncDisposable {
  /** What was answered instead of what was wanted, with how often. */
  readonly failures: ReadonlyMap<string, number>;
  /** Sends no new requests, and waits for the last answers. */
  stop(): Promise<{ readonly sent: number; readonly perSecond: number; readonly cpuMsPerRequest: number }>;
}

const EVERY_MS = 20;
/** Clients wait for a slow machine instead of burying it. */
const AT_ONCE_MAX = 40;
const PATIENCE_MS = 120_000;

/** Begins so many requests a second, whether the ones before were answered or not. */
export function startSteadyLoad(perSecond: number, once: LoadRequest): SteadyLoad {
  const failures = new Map<string, number>();
  let [sent, underWay] = [0, 0];
  const begin = async (number: number): Promise<void> => {
    underWay += 1;
    const failure = await once(number).catch((error: unknown) => String(error));
    if (failure !== undefined) failures.set(failure, (failures.get(failure) ?? 0) + 1);
    underWay -= 1;
  };
  const begun = performance.now();
  const cpu = process.cpuUsage();
  const ticks = setInterval(() => {
    // As many as are due by now: a tick that came late owes those of the ones before it.
    const due = ((performance.now() - begun) * perSecond) / 1_000;
    while (sent < due && underWay < AT_ONCE_MAX) void begin(sent++);
  }, EVERY_MS);
  return {
    failures,
    stop: async () => {
      clearInterval(ticks);
      const seconds = (performance.now() - begun) / 1_000;
      const used = process.cpuUsage(cpu);
      await eventually("the last answers", async () => (underWay === 0 ? true : undefined), PATIENCE_MS);
      return {
        sent,
        perSecond: Math.round(sent / seconds),
        // Of this process: clients, balancer and target.
        cpuMsPerRequest: Number(((used.user + used.system) / 1_000 / sent).toFixed(2)),
      };
    },
    [Symbol.asyncDispose]: async () => {
      clearInterval(ticks);
      while (underWay > 0) await sleep(EVERY_MS);
    },
  };
}
