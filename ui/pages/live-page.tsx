import { useQuery } from "@tanstack/react-query";
import { Stack, Text } from "@mantine/core";
import { readLivePicture, readRunGraph, watchRunPage } from "../api/operations.ts";
import { keyOf, useRead, useSignedIn } from "../api/queries.ts";
import { addressOf, call } from "../api/request.ts";
import type { Run } from "../parts/answers.ts";
import { Section } from "../parts/section.tsx";
import styles from "./run-node-panel.module.css";

/** The worker takes a picture a second, and stops a few seconds after nobody has asked. */
const AGAIN_MS = 1_000;

/** What the page of a run's browser shows now, for a run that has nodes with a browser. */
export function LivePage({ run }: { readonly run: Run }) {
  const { may } = useSignedIn();
  const mayWatch = run.status === "running" && run.blueprint !== null && may("run.results");
  const graph = useRead(readRunGraph, { params: { runId: run.id } }, { enabled: mayWatch });
  const hasBrowser = graph.data?.nodes.some(({ type }) => type === "browser") ?? false;
  return mayWatch && hasBrowser ? <Watched runId={run.id} /> : null;
}

function Watched({ runId }: { readonly runId: string }) {
  const params = { runId };
  const live = useQuery({
    queryKey: keyOf(watchRunPage, { params }),
    queryFn: async ({ signal }) => await call(watchRunPage, { params }, signal),
    // Only while the dashboard is visible.
    refetchInterval: AGAIN_MS,
    gcTime: 0,
    retry: false,
  });
  const picture = live.data?.picture ?? null;
  return (
    <Section title="Live">
      {picture === null ? (
        <Text size="sm" c="dimmed">
          No page is open at the moment. Logins are never shown.
        </Text>
      ) : (
        <Stack gap="xs">
          <Text size="sm">
            {picture.step}, {ageOf(picture.age_seconds)}
          </Text>
          <img
            className={styles["picture"]}
            src={addressOf(readLivePicture, { params, query: { taken_at: picture.taken_at } })}
            alt={`The page at ${picture.step}. Fields and secrets are covered.`}
          />
        </Stack>
      )}
    </Section>
  );
}

const ageOf = (seconds: number): string =>
  seconds < 2 ? "now" : seconds < 120 ? `${seconds} s ago` : `${Math.floor(seconds / 60)} min ago`;
