import { ActionIcon, AppShell, Burger, Center, Group } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Suspense, useEffect, useRef } from "react";
import { Route, Switch, useLocation } from "wouter";
import { useSignedIn } from "../api/queries.ts";
import { useWatch } from "../api/watch.ts";
import { NotFoundPage } from "../pages/not-found.tsx";
import { noteNavigation } from "../parts/page-head.tsx";
import { Loading } from "../parts/loading.tsx";
import { ROUTES } from "../routes.tsx";
import { Brand } from "./brand.tsx";
import { ConnectionNote } from "./connection-note.tsx";
import { Navigation } from "./navigation.tsx";
import { PageBoundary } from "./page-boundary.tsx";
import { useShortcuts } from "./shortcuts.ts";
import { TestModeNote } from "./test-mode-note.tsx";

/** The navigation next to the page; on phones it is opened by a button. */
export function Frame() {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const [location] = useLocation();
  const main = useRef<HTMLElement>(null);
  const first = useRef(location);
  useShortcuts();
  useWatch();
  useEffect(() => {
    if (first.current === location) return;
    first.current = "";
    noteNavigation();
    close();
    window.scrollTo(0, 0);
  }, [location, close]);
  return (
    <>
      <a
        className="skip-link"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <AppShell
        layout="alt"
        padding={{ base: "md", sm: "xl" }}
        header={{ height: { base: 56, sm: 0 } }}
        navbar={{ width: 240, breakpoint: "sm", collapsed: { mobile: !isOpen } }}
      >
        <TopBar isOpen={isOpen} onToggle={toggle} />
        <SideBar onClose={close} />
        <AppShell.Main ref={main} id="main" tabIndex={-1} className="main">
          <ConnectionNote />
          <TestModeNote />
          <PageBoundary key={location}>
            <Suspense
              fallback={
                <Center mih={240} aria-busy="true">
                  <Loading what="Loading the page" />
                </Center>
              }
            >
              <Pages />
            </Suspense>
          </PageBoundary>
        </AppShell.Main>
      </AppShell>
    </>
  );
}

function TopBar({ isOpen, onToggle }: { readonly isOpen: boolean; readonly onToggle: () => void }) {
  return (
    // Not a landmark: the header of a dialog would be a second one.
    <AppShell.Header hiddenFrom="sm" px="md" role="none">
      <Group component="nav" aria-label="Top" h="100%" justify="space-between">
        <Brand />
        <Burger opened={isOpen} onClick={onToggle} aria-label="Navigation" aria-expanded={isOpen} size="sm" />
      </Group>
    </AppShell.Header>
  );
}

function SideBar({ onClose }: { readonly onClose: () => void }) {
  return (
    <AppShell.Navbar p="md" aria-label="Dashboard">
      <Group justify="space-between" mb="md">
        <Brand />
        <ActionIcon
          hiddenFrom="sm"
          variant="subtle"
          color="gray"
          size="lg"
          aria-label="Close the navigation"
          onClick={onClose}
        >
          ✕
        </ActionIcon>
      </Group>
      <Navigation />
    </AppShell.Navbar>
  );
}

function Pages() {
  const { may } = useSignedIn();
  return (
    <Switch>
      {ROUTES.filter(({ permission }) => permission === null || may(permission)).map(({ path, page }) => (
        <Route key={path} path={path} component={page} />
      ))}
      <Route>
        <NotFoundPage />
      </Route>
    </Switch>
  );
}
