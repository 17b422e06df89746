import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useEffect, useState, type FormEvent } from "react";
import { useRouter } from "wouter";
import { readMe, stepUp } from "../api/operations.ts";
import { setMe, useOperation, useSignedIn, type Me } from "../api/queries.ts";
import { call } from "../api/request.ts";
import { onCodeRequest, onStepUpDone, type CodeRequest } from "../api/step-up.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { OIDC_STEP_UP_PATH } from "./oidc-return.tsx";

/** Dangerous actions require an authentication within the last five minutes: calls that need one wait for this dialog. */
export function StepUpDialog() {
  const [request, setRequest] = useState<CodeRequest | null>(null);
  const ways = useSignedIn().step_up_by;
  const byProvider = ways.includes("oidc");
  const byCode = !byProvider || ways.includes("code");
  useEffect(() => onCodeRequest((next) => setRequest(() => next)), []);
  const cancel = (): void => {
    request?.cancel();
    setRequest(null);
  };
  const continueSession = (me: Me): void => {
    setMe(me);
    request?.resolve();
    setRequest(null);
  };
  return (
    <Modal
      opened={request !== null}
      onClose={cancel}
      title="Confirm that it is you"
      closeButtonProps={{ "aria-label": "Close" }}
      // Above the dialog whose action requires it, which is hidden meanwhile.
      zIndex={400}
      className="step-up"
    >
      <Stack gap="lg">
        {byProvider && <ByProvider onDone={continueSession} onCancel={cancel} isAlone={!byCode} />}
        {byCode && <ByCode onDone={continueSession} onCancel={cancel} />}
      </Stack>
    </Modal>
  );
}

interface Way {
  readonly onDone: (me: Me) => void;
  readonly onCancel: () => void;
}

function ByCode({ onDone, onCancel }: Way) {
  const [code, setCode] = useState("");
  const stepping = useOperation(stepUp, { changes: [], onDone });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    stepping.mutate({ body: { code } });
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <Text size="sm">Enter your authenticator code. You won&apos;t be asked again for five minutes.</Text>
        {stepping.failure && <FailureNote error={stepping.failure} />}
        <TextInput
          label="Code"
          description="6-digit code or recovery code"
          autoComplete="one-time-code"
          required
          data-autofocus
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" loading={stepping.isPending}>
            Confirm
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** In a separate tab, so that entered values on this page are kept. */
function ByProvider({ onDone, onCancel, isAlone }: Way & { readonly isAlone: boolean }) {
  const { base } = useRouter();
  const [failure, setFailure] = useState<unknown>(null);
  useEffect(() => onStepUpDone(() => void call(readMe, {}).then(onDone, setFailure)), [onDone]);
  return (
    <Stack gap="md">
      <Text size="sm">
        Sign in at your provider again, in a separate page. You won&apos;t be asked again for five minutes.
      </Text>
      {failure !== null && <FailureNote error={failure} />}
      <Group justify="flex-end">
        {isAlone && (
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
        )}
        <Button component="a" href={`${base}${OIDC_STEP_UP_PATH}`} target="_blank" data-autofocus={isAlone}>
          Sign in again
        </Button>
      </Group>
    </Stack>
  );
}
