import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useEffect, useState, type FormEvent } from "react";
import { stepUp } from "../api/operations.ts";
import { setMe, useDo } from "../api/queries.ts";
import { onCodeRequest, type CodeRequest } from "../api/step-up.ts";
import { FailureNote } from "../parts/failure-note.tsx";

/** What is dangerous wants a code given within the last five minutes: the call that needs it waits here. */
export function StepUpDialog() {
  const [request, setRequest] = useState<CodeRequest | null>(null);
  const [code, setCode] = useState("");
  useEffect(() => onCodeRequest((next) => setRequest(() => next)), []);
  const stepping = useDo(stepUp, {
    changes: [],
    onDone: (me) => {
      setMe(me);
      request?.resolve();
      close();
    },
  });
  const close = (): void => {
    setRequest(null);
    setCode("");
    stepping.reset();
  };
  const cancel = (): void => {
    request?.cancel();
    close();
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    stepping.mutate({ body: { code } });
  };
  return (
    <Modal
      opened={request !== null}
      onClose={cancel}
      title="Confirm that it is you"
      closeButtonProps={{ "aria-label": "Close" }}
      // Above the dialog whose action wants it.
      zIndex={400}
    >
      <form onSubmit={submit}>
        <Stack gap="md">
          <Text size="sm">This wants your second factor. It then counts for five minutes.</Text>
          {stepping.failure && <FailureNote error={stepping.failure} />}
          <TextInput
            label="Code"
            description="Of your authenticator app, or a recovery code"
            autoComplete="one-time-code"
            required
            data-autofocus
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={cancel}>
              Cancel
            </Button>
            <Button type="submit" loading={stepping.isPending}>
              Confirm
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
