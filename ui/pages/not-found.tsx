import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";

export function NotFoundPage() {
  return (
    <>
      <PageHead title="Not found" />
      <EmptyState title="Page not found, or you don't have access">
        Check the address, or ask an admin about your role. Go to the{" "}
        <Anchor component={Link} href="/" underline="always">
          overview
        </Anchor>
        .
      </EmptyState>
    </>
  );
}
