import { Badge, NavLink, ScrollArea, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { useRead, useSignedIn } from "../api/queries.ts";
import { listProposals, listReviews, listWebhooks, listWriteGroups } from "../api/operations.ts";
import { isDead } from "../pages/webhook-death.ts";
import { GROUPS, ROUTES, type Route } from "../routes.tsx";
import { OwnMenu } from "./own-menu.tsx";
import { RunSearch } from "./run-search.tsx";

/** Only the pages that the role may see. */
export function Navigation() {
  const { may } = useSignedIn();
  const listed = ROUTES.filter(({ nav, permission }) => nav && (permission === null || may(permission)));
  return (
    <Stack h="100%" gap="md" mih={0}>
      <RunSearch />
      <ScrollArea flex={1} type="auto" mih={0}>
        <Stack gap="md">
          {GROUPS.map((group) => {
            const routes = listed.filter(({ nav }) => nav?.group === group);
            return routes.length === 0 ? null : <NavigationGroup key={group} title={group} routes={routes} />;
          })}
        </Stack>
      </ScrollArea>
      <OwnMenu />
    </Stack>
  );
}

function NavigationGroup({ title, routes }: { readonly title: string; readonly routes: readonly Route[] }) {
  const [location] = useLocation();
  const isAt = (path: string): boolean =>
    path === "/" ? location === "/" : `${location}/`.startsWith(`${path}/`);
  return (
    <section aria-label={title}>
      <Text size="xs" c="dimmed" fw={600} px="sm" pb={4}>
        {title}
      </Text>
      {routes.map(({ path, title: name }) => (
        <NavLink
          key={path}
          component={Link}
          href={path}
          label={name}
          active={isAt(path)}
          aria-current={isAt(path) ? "page" : undefined}
          className="nav-link"
          rightSection={COUNTS[path]}
        />
      ))}
    </section>
  );
}

function WaitingReviews() {
  const { data } = useRead(listReviews, {}, { live: true });
  return <Waiting count={data?.items.length ?? 0} />;
}

function WaitingWrites() {
  const { data } = useRead(listWriteGroups, { query: { account: undefined } }, { live: true });
  return <Waiting count={(data?.items ?? []).reduce((sum, { writes }) => sum + writes, 0)} />;
}

function WaitingProposals() {
  const { data } = useRead(listProposals, { query: { waiting: true } }, { live: true });
  return <Waiting count={data?.items.length ?? 0} />;
}

function DeadEndpoints() {
  const { data } = useRead(listWebhooks, { query: { account: undefined } }, { live: true });
  return <Waiting count={(data?.items ?? []).filter(isDead).length} />;
}

function Waiting({ count }: { readonly count: number }) {
  return count === 0 ? null : (
    <Badge size="sm" variant="filled" aria-label={`${count} waiting`}>
      {count}
    </Badge>
  );
}

/** By the path of a page: the number of items that need attention. */
const COUNTS: Readonly<Record<string, ReactNode>> = {
  "/reviews": <WaitingReviews />,
  "/writes": <WaitingWrites />,
  "/proposals": <WaitingProposals />,
  "/webhooks": <DeadEndpoints />,
};
