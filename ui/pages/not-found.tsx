import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";

export function NotFoundPage() {
  return (
    <>
      <PageHead title="Not found" />
      <EmptyState title="There is no such page for you">
        The address is wrong, or your role does not see it. Go to the{" "}
        <Anchor component={Link} href="/" underline="always">
          overview
        </Anchor>
        .
      </EmptyState>
    </>
  );
}
