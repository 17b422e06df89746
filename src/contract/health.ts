import Type from "typebox";
import { json, type Operation } from "./operation.ts";

const health = (description: string, examples: readonly string[]) =>
  Type.Object(
    { status: Type.String({ description, examples: [...examples] }) },
    { title: "Health", description: "How the process is." },
  );

const state = health("What the process says about itself, in a word or two.", [
  "ok",
  "ready",
  "draining",
  "database unavailable",
  "database gone",
]);

const TAG = "Health";

export const readLiveness: Operation = {
  id: "readLiveness",
  method: "get",
  path: "/healthz",
  tag: TAG,
  summary: "Whether the process is up",
  description:
    "Answers as long as the process does; `503` when the embedded PostgreSQL has been gone for a minute and could not be started again. Needs no API key.",
  parameters: [],
  answers: [
    {
      status: 200,
      description: "It is up.",
      content: json(state, { up: { status: "ok" } }),
    },
    {
      status: 503,
      description: "It is up and can't go on.",
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
  summary: "Whether the service can work",
  description:
    "For load balancers: answers `503` while the database is out of reach or the process is being stopped. Needs no API key.",
  parameters: [],
  answers: [
    {
      status: 200,
      description: "It can work.",
      content: json(state, { ready: { status: "ready" } }),
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
