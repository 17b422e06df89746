import { Button } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { Note } from "../parts/note.tsx";

/** What a page throws ends the page, not the dashboard. React has no function for it. */
export class PageBoundary extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override readonly state: { readonly error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <Note tone="bad" title="This page could not be shown" isAlert>
        The service may have been upgraded since you opened the dashboard. Reload the page; if that does not
        help, tell the people who run this service.
        <Button mt="xs" size="xs" variant="default" display="block" onClick={() => window.location.reload()}>
          Reload
        </Button>
      </Note>
    );
  }
}
