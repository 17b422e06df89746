import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";

export function NotFoundPage() {
  return (
    <>
      <PageHead title="Not found" />
      <EmptyState title="Page not found, or you have no access to it">
        The address is wrong, or your role does not see it. Go to the{" "}
        <Anchor component={Link} href="/" underline="always">
          overview
        </Anchor>
        .
      </EmptyState>
    </>
  );
}
