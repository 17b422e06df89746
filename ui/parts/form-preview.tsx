import { Group, NativeSelect, SegmentedControl, Skeleton, Stack, Text } from "@mantine/core";
import { keepPreviousData } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { Language } from "#domain/language.ts";
import { previewForm } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { FailureNote } from "./failure-note.tsx";
import styles from "./form-preview.module.css";

const LANGUAGE_NAMES: Readonly<Record<Language, string>> = {
  en: "English",
  de: "German",
  fr: "French",
  es: "Spanish",
  it: "Italian",
  pt: "Portuguese",
  nl: "Dutch",
  pl: "Polish",
  ja: "Japanese",
  ar: "Arabic",
};
const LANGUAGE_CHOICES = Object.entries(LANGUAGE_NAMES).map(([value, label]) => ({ value, label }));

const FRAME_BORDER_PX = 2;

type Screen = "phone" | "desktop";
type Scheme = "light" | "dark";

/** The hosted page itself, in a frame that can send nothing. `document` is a strategy without problems. */
export function FormPreview({ document }: { readonly document: string }) {
  const [language, setLanguage] = useState<Language>("en");
  const [screen, setScreen] = useState<Screen>("desktop");
  const [scheme, setScheme] = useState<Scheme>("light");
  const frame = useRef<HTMLIFrameElement>(null);
  useEffect(() => fitToContent(frame.current), [screen]);
  const preview = useRead(
    previewForm,
    { body: { text: document, language, scheme } },
    { placeholderData: keepPreviousData },
  );
  return (
    <Stack gap="sm" component="section" aria-label="Preview of the form">
      <Group gap="sm" align="end">
        <NativeSelect
          aria-label="Language of the preview"
          data={LANGUAGE_CHOICES}
          value={language}
          onChange={(event) => setLanguage(event.currentTarget.value as Language)}
        />
        <Choice
          label="Screen of the preview"
          value={screen}
          onChange={setScreen}
          data={[
            { value: "desktop", label: "Desktop" },
            { value: "phone", label: "Phone" },
          ]}
        />
        <Choice
          label="Colour scheme of the preview"
          value={scheme}
          onChange={setScheme}
          data={[
            { value: "light", label: "Light" },
            { value: "dark", label: "Dark" },
          ]}
        />
      </Group>
      {preview.error && <FailureNote error={preview.error} />}
      {preview.data === undefined ? (
        !preview.error && <Skeleton h={640} radius="lg" />
      ) : (
        <iframe
          ref={frame}
          className={styles["frame"]}
          title="The hosted page"
          data-screen={screen}
          data-scheme={scheme}
          // It inherits the dashboard's Content-Security-Policy: only the service's own scripts, styles and images.
          sandbox="allow-same-origin allow-scripts"
          srcDoc={preview.data.page}
          onLoad={(event) => fitToContent(event.currentTarget)}
        />
      )}
      <Text size="sm" c="dimmed">
        What end users see, with the account’s branding. Nothing that is entered here is sent.
      </Text>
    </Stack>
  );
}

/** As high as its page, whose last part is the button. */
function fitToContent(frame: HTMLIFrameElement | null): void {
  const page = frame?.contentDocument?.documentElement;
  if (!frame || !page) return;
  // A page is at least as high as its window.
  frame.style.height = "0";
  frame.style.height = `${page.scrollHeight + FRAME_BORDER_PX}px`;
}

function Choice<T extends string>(props: {
  readonly label: string;
  readonly value: T;
  readonly data: { readonly value: T; readonly label: string }[];
  readonly onChange: (value: T) => void;
}) {
  return (
    <SegmentedControl
      aria-label={props.label}
      value={props.value}
      onChange={(value) => props.onChange(value as T)}
      data={props.data}
    />
  );
}
