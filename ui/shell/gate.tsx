import { Center } from "@mantine/core";
import { useMe } from "../api/queries.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { Loading } from "../parts/loading.tsx";
import { Frame } from "./frame.tsx";
import { NewSecondFactor } from "./new-second-factor.tsx";
import { OuterPage } from "./outer-page.tsx";
import { SignInPage } from "./sign-in-page.tsx";
import { StepUpDialog } from "./step-up-dialog.tsx";

/** Who sees what before any page: the address stays, so that a sign-in leads to the page that was asked for. */
export function Gate() {
  const me = useMe();
  if (me.isPending)
    return (
      <Center mih="100vh">
        <Loading what="Loading" />
      </Center>
    );
  if (me.isError)
    return (
      <OuterPage title="Latchkey">
        <FailureNote error={me.error} onRetry={() => void me.refetch()} />
      </OuterPage>
    );
  if (!me.data) return <SignInPage />;
  // Design, page 6, 5.10: mandatory for an admin; the API refuses everything else until it is there.
  if (me.data.role === "admin" && !me.data.has_second_factor)
    return (
      <OuterPage title="Set up your second factor">
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
