import { Alert, Button, Text } from "@mantine/core";
import { Component, type ReactNode } from "react";

/** What a page throws ends the page, not the dashboard. React has no function for it. */
export class PageBoundary extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override readonly state: { readonly error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <Alert color="red" title="This page could not be shown" role="alert">
        <Text size="sm">
          The service may have been upgraded since the dashboard was opened. Load it again; if that does not
          help, tell the people who run this service.
        </Text>
        <Button mt="sm" size="xs" variant="default" onClick={() => window.location.reload()}>
          Load again
        </Button>
      </Alert>
    );
  }
}
