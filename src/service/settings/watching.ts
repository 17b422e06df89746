import { oneOf, type Checked, type Setting } from "./read-value.ts";

/** How the process shows what it does. */
export interface WatchingSettings {
  /** Where the metrics are served; null: nowhere. */
  readonly metrics: { readonly host: string; readonly port: number } | null;
  /** Which requests have a line in the log: all, those answered with 500 or more, or none. */
  readonly accessLog: AccessLog;
  /** Whether requests to targets have the `traceparent` of their span. */
  readonly tracesTargets: boolean;
}

const ACCESS_LOGS = ["on", "errors", "off"] as const;
export type AccessLog = (typeof ACCESS_LOGS)[number];

export const WATCHING_SETTINGS: readonly Setting[] = [
  {
    name: "LATCHKEY_METRICS_PORT",
    type: "port",
    default: "unset: no metrics",
    description:
      "Port on which GET /metrics answers in Prometheus' format, without authentication; docs/metrics.md.",
  },
  {
    name: "LATCHKEY_METRICS_HOST",
    type: "address",
    default: "127.0.0.1",
    description: "Address of the metrics' port. Anyone who reaches it can read the metrics.",
  },
  {
    name: "LATCHKEY_ACCESS_LOG",
    type: ACCESS_LOGS.join(" | "),
    default: "off",
    description: "Log lines for requests: all, those answered with 500 or more, or none.",
  },
  {
    name: "LATCHKEY_TRACE_TARGETS",
    type: "true | false",
    default: "false",
    description:
      "true: requests to targets have the `traceparent` of their span, if an OpenTelemetry SDK is loaded; docs/metrics.md.",
  },
];

export function readWatching(checked: Checked): WatchingSettings {
  const port = checked<number | null>(
    "LATCHKEY_METRICS_PORT",
    (text) => (/^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined),
    "a port from 0 to 65535",
    null,
  );
  const host = checked(
    "LATCHKEY_METRICS_HOST",
    (text) => (/^[^\s/]+$/.test(text) ? text : undefined),
    "a host name or address",
    "127.0.0.1",
  );
  return {
    metrics: port === null ? null : { host, port },
    accessLog: checked("LATCHKEY_ACCESS_LOG", oneOf(ACCESS_LOGS), `one of ${ACCESS_LOGS.join(", ")}`, "off"),
    tracesTargets:
      checked("LATCHKEY_TRACE_TARGETS", oneOf(["true", "false"]), "true or false", "false") === "true",
  };
}
