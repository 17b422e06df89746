import { Center } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useLocation } from "wouter";
import { useMe } from "../api/queries.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { Loading } from "../parts/loading.tsx";
import { Frame } from "./frame.tsx";
import { OIDC_PATH, OIDC_STEP_UP_PATH, OidcReturn, OidcStepUpStart } from "./oidc-return.tsx";
import { OuterPage } from "./outer-page.tsx";
import { StepUpDialog } from "./step-up-dialog.tsx";

// Who is signed in does not load the steps of signing in.
const SignInPage = lazy(async () => ({ default: (await import("./sign-in-page.tsx")).SignInPage }));
const OwnPassword = lazy(async () => ({ default: (await import("./own-password.tsx")).OwnPassword }));
const GiveCode = lazy(async () => ({ default: (await import("./give-code.tsx")).GiveCode }));
const NewSecondFactor = lazy(async () => ({
  default: (await import("./new-second-factor.tsx")).NewSecondFactor,
}));

const WAIT = (
  <Center mih="100vh">
    <Loading what="Loading" />
  </Center>
);

/** Shows the sign-in steps before any page. The URL is kept, so that the requested page is shown afterwards. */
export const Gate = () => (
  <Suspense fallback={WAIT}>
    <Step />
  </Suspense>
);

function Step() {
  const me = useMe();
  const [path] = useLocation();
  if (me.isPending) return WAIT;
  if (me.isError)
    return (
      <OuterPage title="Latchkey">
        <FailureNote error={me.error} onRetry={() => void me.refetch()} />
      </OuterPage>
    );
  if (path === OIDC_PATH) return <OidcReturn me={me.data} />;
  if (!me.data) return <SignInPage />;
  if (path === OIDC_STEP_UP_PATH) return <OidcStepUpStart />;
  // docs/decisions/0022: mandatory for an admin; the API refuses everything else until it is set up.
  if (me.data.needs === "password")
    return (
      <OuterPage title="Choose your own password">
        <OwnPassword />
      </OuterPage>
    );
  if (me.data.needs === "code")
    return (
      <OuterPage title="Two-factor authentication">
        <GiveCode />
      </OuterPage>
    );
  if (me.data.needs === "second_factor")
    return (
      <OuterPage title="Set up two-factor authentication">
        <NewSecondFactor />
      </OuterPage>
    );
  return (
    <>
      <Frame />
      <StepUpDialog />
    </>
  );
}
