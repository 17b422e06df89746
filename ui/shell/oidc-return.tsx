import { Button, Stack, Text } from "@mantine/core";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useLocation } from "wouter";
import { beginOidcStepUp, finishOidcSignIn, finishOidcStepUp } from "../api/operations.ts";
import { setMe, type Me } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { announceStepUp } from "../api/step-up.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { Loading } from "../parts/loading.tsx";
import { OuterPage } from "./outer-page.tsx";

/** The path to which the single sign-on provider redirects browsers. */
export const OIDC_PATH = "/oidc";
/** The path of a separate tab for the step-up, so that entered values on the previous page are kept. */
export const OIDC_STEP_UP_PATH = "/oidc/step-up";

/**
 * Handles the return from the provider. The browser came from another site, so this page was requested without our cookies, but
 * its calls of the API include them. The beginning of `state` determines the purpose; the API has its own record of it.
 */
export function OidcReturn({ me }: { readonly me: Me | null }) {
  const [query] = useState(takeQuery);
  const isStepUp = new URLSearchParams(query).get("state")?.startsWith("u") === true;
  return isStepUp ? <StepUpReturn query={query} isSignedIn={me !== null} /> : <SignInReturn query={query} />;
}

/** Removes the query from the URL at once, so that it can't be copied or reloaded. */
function takeQuery(): string {
  const query = location.search.slice(1);
  history.replaceState(null, "", location.pathname);
  return query;
}

function SignInReturn({ query }: { readonly query: string }) {
  const [, navigate] = useLocation();
  const failure = useOnce(async () => {
    const { me, return_to: to } = await call(finishOidcSignIn, { body: { query } });
    setMe(me);
    navigate(to, { replace: true });
  });
  return (
    <Trip failure={failure} doing="Signing in">
      <Button onClick={() => navigate("/", { replace: true })}>Back to sign-in</Button>
    </Trip>
  );
}

function StepUpReturn({ query, isSignedIn }: { readonly query: string; readonly isSignedIn: boolean }) {
  const [isDone, setIsDone] = useState(false);
  const failure = useOnce(async () => {
    setMe(await call(finishOidcStepUp, { body: { query } }));
    announceStepUp();
    setIsDone(true);
    window.close();
  });
  return (
    <Trip failure={failure} doing={isDone ? null : "Confirming"}>
      <Text size="sm">
        {failure === null
          ? "Confirmed. Return to the page that you came from; you can close this one."
          : `Close this page, and ${isSignedIn ? "try again where you came from" : "sign in again"}.`}
      </Text>
    </Trip>
  );
}

/** Redirects at once. */
export function OidcStepUpStart() {
  const failure = useOnce(async () => {
    const { url } = await call(beginOidcStepUp, {});
    location.replace(url);
  });
  return (
    <Trip failure={failure} doing="Redirecting to the provider">
      <Text size="sm">Close this page, and try again where you came from.</Text>
    </Trip>
  );
}

/** Shows `doing` until there is a result. */
function Trip(props: {
  readonly failure: Error | null;
  readonly doing: string | null;
  readonly children: ReactNode;
}) {
  const isOver = props.failure !== null || props.doing === null;
  return (
    <OuterPage title="Single sign-on">
      <Stack gap="md">
        {props.failure && <FailureNote error={props.failure} />}
        {isOver ? props.children : <Loading what={props.doing ?? ""} />}
      </Stack>
    </OuterPage>
  );
}

/** Executes work that can't be repeated only once, however often React mounts the page. */
function useOnce(work: () => Promise<void>): Error | null {
  const [failure, setFailure] = useState<Error | null>(null);
  const isStarted = useRef(false);
  useEffect(() => {
    if (isStarted.current) return;
    isStarted.current = true;
    work().catch((error: unknown) => setFailure(error instanceof Error ? error : new Error(String(error))));
  });
  return failure;
}
