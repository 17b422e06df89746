import { Button, Stack, Text } from "@mantine/core";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useLocation } from "wouter";
import { beginOidcStepUp, finishOidcSignIn, finishOidcStepUp } from "../api/operations.ts";
import { setMe, type Me } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { tellStepUp } from "../api/step-up.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { Loading } from "../parts/loading.tsx";
import { OuterPage } from "./outer-page.tsx";

/** Where the provider of single sign-on sends browsers back to. */
export const OIDC_PATH = "/oidc";
/** A tab of its own that is sent there, so that what was typed on the page before stays. */
export const OIDC_STEP_UP_PATH = "/oidc/step-up";

/**
 * The browser is back. It came from another site, so no cookie of ours was sent with this page; what the page asks the API goes out from
 * our own site, and has them. How `state` begins says what it was for; the API has its own record.
 */
export function OidcReturn({ me }: { readonly me: Me | null }) {
  const [query] = useState(takeQuery);
  const isStepUp = new URLSearchParams(query).get("state")?.startsWith("u") === true;
  return isStepUp ? <StepUpReturn query={query} isSignedIn={me !== null} /> : <SignInReturn query={query} />;
}

/** Out of the address at once: nobody shall copy or reload it. */
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
    tellStepUp();
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

/** Leaves at once. */
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

/** `doing` until there is something to say. */
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

/** What can't be done twice is done once, however often React mounts the page. */
function useOnce(work: () => Promise<void>): Error | null {
  const [failure, setFailure] = useState<Error | null>(null);
  const isBegun = useRef(false);
  useEffect(() => {
    if (isBegun.current) return;
    isBegun.current = true;
    work().catch((error: unknown) => setFailure(error instanceof Error ? error : new Error(String(error))));
  });
  return failure;
}
