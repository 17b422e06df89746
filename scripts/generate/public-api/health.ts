import { Type } from "#lib/type.ts";
import { json, type Operation } from "#contract/operation.ts";

const health = (description: string, examples: readonly string[]) =>
  Type.Object(
    { status: Type.String({ description, examples: [...examples] }) },
    { title: "Health", description: "The state of the process." },
  );

const state = health("The state of the process, in a word or two.", [
  "ok",
  "ready",
  "draining",
  "database unavailable",
  "database gone",
]);

const FULL = Type.Optional(
  Type.Array(Type.String({ examples: ["data", "objects", "scratch", "database"] }), {
    description: "The disks that had no room for a write in the last half minute. Missing: none.",
  }),
);
const readiness = Type.Object(
  { ...state.properties, disk_full: FULL },
  { title: "Readiness", description: "Whether the process can work, and what is in its way." },
);

const TAG = "Health";

export const readLiveness: Operation = {
  id: "readLiveness",
  method: "get",
  path: "/healthz",
  tag: TAG,
  summary: "Check whether the process is running",
  description:
    "Returns `503` if the embedded PostgreSQL has been down for a minute and could not be restarted. Needs no API key.",
  parameters: [],
  answers: [
    {
      status: 200,
      description: "It is up.",
      content: json(state, { up: { status: "ok" } }),
    },
    {
      status: 503,
      description: "It is running but can't continue.",
      content: json(state, { gone: { status: "database gone" } }),
    },
  ],
  failures: [],
  curl: { curl: `curl -sS "$PUBLIC_URL/healthz"` },
  isOpen: true,
};

export const readReadiness: Operation = {
  id: "readReadiness",
  method: "get",
  path: "/readyz",
  tag: TAG,
  summary: "Check whether the service is ready",
  description:
    "For load balancers: returns `503` while the database is unreachable or the process is being stopped. Needs no API key.",
  parameters: [],
  answers: [
    {
      status: 200,
      description: "It can work.",
      content: json(readiness, {
        ready: { status: "ready" },
        full: { status: "ready", disk_full: ["objects"] },
      }),
    },
    {
      status: 503,
      description: "It can't.",
      content: json(state, {
        draining: { status: "draining" },
        database: { status: "database unavailable" },
      }),
    },
  ],
  failures: [],
  curl: { curl: `curl -sS "$PUBLIC_URL/readyz"` },
  isOpen: true,
};
