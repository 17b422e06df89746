import { useNow } from "./now.ts";

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const day = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});

const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;
const DAYS_MAX = 3;

function ago(atMs: number, nowMs: number): string {
  const ms = atMs - nowMs;
  if (Math.abs(ms) < 10_000) return "just now";
  if (Math.abs(ms) < 60_000) return relative.format(Math.round(ms / 1_000), "second");
  for (const [unit, size] of UNITS) {
    if (Math.abs(ms) < size) continue;
    if (unit === "day" && Math.abs(ms) > DAYS_MAX * size) return day.format(atMs);
    return relative.format(Math.round(ms / size), unit);
  }
  return exact.format(atMs);
}

const { timeZone } = Intl.DateTimeFormat().resolvedOptions();

/** In UTC, as everywhere else, and in the reader's time zone. */
const inBothZones = (atMs: number): string => {
  const utc = new Date(atMs).toISOString().replace("T", " ").replace("Z", " UTC");
  return timeZone === "UTC" ? utc : `${utc}, ${exact.format(atMs)} in ${timeZone}`;
};

const short = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "narrow" });

/** 3m ago, 2h ago, 22 Nov, 09:13. */
function agoShort(atMs: number, nowMs: number): string {
  const ms = atMs - nowMs;
  if (Math.abs(ms) < 10_000) return "just now";
  if (Math.abs(ms) < 60_000) return short.format(Math.round(ms / 1_000), "second");
  const [unit, size] = UNITS.find(([, each]) => Math.abs(ms) >= each) ?? ["minute", 60_000];
  if (unit === "day" && Math.abs(ms) > DAYS_MAX * size) return day.format(atMs);
  return short.format(Math.round(ms / size), unit);
}

/** A relative time; a tooltip shows the exact time in the reader's time zone and in UTC. */
export function Time(props: {
  readonly at: string;
  readonly isExact?: boolean;
  /** For a narrow column. */
  readonly isShort?: boolean;
  /** Always a date, however near: "Decide by 3 Dec, 11:40". */
  readonly isDate?: boolean;
}) {
  const { at, isExact = false, isShort = false, isDate = false } = props;
  const now = useNow();
  const atMs = Date.parse(at);
  return (
    <time dateTime={at} title={inBothZones(atMs)} className="no-wrap">
      {isExact ? exact.format(atMs) : isDate ? day.format(atMs) : (isShort ? agoShort : ago)(atMs, now)}
    </time>
  );
}

/** 850 ms, 12.3 s, 4 min 10 s, 2 h 5 min, 30 days; 5 min without "0 s". */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const days = ms / 86_400_000;
  if (days >= 2 && Number.isInteger(days)) return `${days} days`;
  const minutes = Math.floor(ms / 60_000);
  const [large, small] =
    minutes < 60
      ? [`${minutes} min`, `${Math.floor((ms % 60_000) / 1_000)} s`]
      : [`${Math.floor(minutes / 60)} h`, `${minutes % 60} min`];
  return small.startsWith("0 ") ? large : `${large} ${small}`;
}

/** From one time to another, or until now. */
export function Elapsed({ from, to }: { readonly from: string | null; readonly to: string | null }) {
  const now = useNow();
  if (from === null) return <>–</>;
  const ms = (to === null ? now : Date.parse(to)) - Date.parse(from);
  return <>{formatDuration(Math.max(0, ms))}</>;
}
