import { Button } from "@mantine/core";
import { Component, useEffect, useState, type ReactNode } from "react";
import { reloadPage } from "../api/use-draft.ts";
import { Note } from "../parts/note.tsx";
import { PageHead } from "../parts/page-head.tsx";

/** An error in a page ends the page, not the dashboard. React requires a class for this. */
export class PageBoundary extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override readonly state: { readonly error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    return this.state.error === null ? this.props.children : <BrokenPage />;
  }
}

const AGAIN_MS = 2_000;

const isReachable = async (): Promise<boolean> =>
  await fetch(document.baseURI, { method: "HEAD", cache: "no-store" }).then(
    () => true,
    () => false,
  );

/** A page's code is loaded when it is opened: without a connection it loads later; after an upgrade of the service, never. */
function BrokenPage() {
  const [isOffline, setOffline] = useState<boolean | null>(null);
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (wasOffline: boolean): Promise<void> => {
      const reached = await isReachable();
      if (isOver) return;
      if (reached && wasOffline) return reloadPage();
      setOffline(!reached);
      if (!reached) timer = setTimeout(() => void look(true), AGAIN_MS);
    };
    void look(false);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, []);
  if (isOffline === null) return null;
  if (isOffline)
    return (
      <>
        <PageHead title="No connection" />
        <Note tone="waiting" title="This page is not loaded yet" isAlert>
          It opens by itself when the service can be reached again.
        </Note>
      </>
    );
  return (
    <>
      <PageHead title="This page could not be shown" />
      <Note tone="bad" title="The service may have been upgraded" isAlert>
        Reload the page; if that does not help, tell the people who run this service.
        <Button mt="xs" size="xs" variant="default" display="block" onClick={reloadPage}>
          Reload
        </Button>
      </Note>
    </>
  );
}
