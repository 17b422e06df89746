import { createRequire } from "node:module";
import type * as OpenTelemetry from "@opentelemetry/api";

/**
 * Traces by OpenTelemetry, of what an SDK that was loaded with `--import` wants to know (docs/metrics.md#traces). Without one nothing is
 * loaded and nothing is done. A span has ids, names and statuses: no address's path, no text of an error, no value of anybody.
 */
const load = createRequire(import.meta.url);
let opened: typeof OpenTelemetry | null | undefined;

/** An SDK registers itself under this name before the program begins. */
const REGISTRY = Symbol.for("opentelemetry.js.api.1");

const open = (): typeof OpenTelemetry | null =>
  (opened ??= REGISTRY in globalThis ? (load("@opentelemetry/api") as typeof OpenTelemetry) : null);

/** W3C Trace Context, version 00: the only one so far. Ids of zeros are invalid. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** A `traceparent`, or null if the text is none: it is as if it had not been sent. */
export const readTraceparent = (text: unknown): string | null =>
  typeof text === "string" && TRACEPARENT.test(text) ? text : null;

/** What is known of a span only while it runs. */
export interface OpenSpan {
  set(name: string, value: string | number): void;
}

const SILENT: OpenSpan = { set: () => {} };

interface SpanOptions {
  /** Null: of the span in progress, if there is one. */
  readonly parent?: string | null;
  readonly kind?: "server" | "client" | "consumer" | "internal";
  readonly attributes?: Readonly<Record<string, string | number>>;
}

const KINDS = { internal: 0, server: 1, client: 2, consumer: 4 } as const;

/** Does the work in a span. What it throws marks the span as failed, by the name of the error alone. */
export async function inSpan<T>(
  name: string,
  { parent = null, kind = "internal", attributes = {} }: SpanOptions,
  work: (span: OpenSpan) => Promise<T>,
): Promise<T> {
  const api = open();
  if (api === null) return await work(SILENT);
  const context = parent === null ? api.context.active() : remoteContext(api, parent);
  const tracer = api.trace.getTracer("latchkey");
  const span = tracer.startSpan(name, { kind: KINDS[kind], attributes: { ...attributes } }, context);
  try {
    return await api.context.with(
      api.trace.setSpan(context, span),
      async () => await work({ set: (key, value) => void span.setAttribute(key, value) }),
    );
  } catch (error) {
    span.setStatus({ code: api.SpanStatusCode.ERROR });
    span.setAttribute("error.type", error instanceof Error ? error.name : "unknown");
    throw error;
  } finally {
    span.end();
  }
}

function remoteContext(api: typeof OpenTelemetry, traceparent: string): OpenTelemetry.Context {
  const [, traceId = "", spanId = "", flags = "00"] = TRACEPARENT.exec(traceparent) ?? [];
  const spanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return api.trace.setSpanContext(api.ROOT_CONTEXT, spanContext);
}

/** The `traceparent` of the span in progress; null: there is none. */
export function currentTraceparent(): string | null {
  const api = open();
  const span = api?.trace.getActiveSpan()?.spanContext();
  if (!api || span === undefined || !api.isSpanContextValid(span)) return null;
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, "0")}`;
}

/** Whether anything is told of spans. */
export const isTracing = (): boolean => open() !== null;
