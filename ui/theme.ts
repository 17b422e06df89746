import { createTheme, type MantineColorsTuple } from "@mantine/core";

/** A calm teal. Index 7 on white, and white on index 7, have a contrast above 4.5. */
const teal: MantineColorsTuple = [
  "#e6f6f7",
  "#d0ebee",
  "#a3d7dd",
  "#72c2cb",
  "#4cb0bc",
  "#34a5b3",
  "#1f93a2",
  "#0b7285",
  "#075e6e",
  "#034a58",
];

/** Bluish greys, the palette of the dark scheme. */
const dark: MantineColorsTuple = [
  "#dfe3e8",
  "#c3c9d1",
  "#a5adb8",
  "#828c99",
  "#48515d",
  "#343c47",
  "#262d37",
  "#1b212a",
  "#151a21",
  "#0f1318",
];

export const theme = createTheme({
  primaryColor: "teal",
  primaryShade: { light: 7, dark: 7 },
  colors: { teal, dark },
  defaultRadius: "md",
  cursorType: "pointer",
  // The system's fonts, so that nothing is loaded.
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: {
    fontWeight: "650",
    sizes: { h1: { fontSize: "1.5rem" }, h2: { fontSize: "1.125rem" }, h3: { fontSize: "1rem" } },
  },
  respectReducedMotion: true,
  // Optional fields are marked instead of required ones.
  components: {
    InputWrapper: { defaultProps: { withAsterisk: false } },
    Notification: { defaultProps: { closeButtonProps: { "aria-label": "Close the message" } } },
  },
});
