import "./styles.ts";
import "@mantine/notifications/styles.css";
import "./dashboard.css";
import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { openQueries } from "./api/queries.ts";
import { Gate } from "./shell/gate.tsx";
import { theme } from "./theme.ts";

/** The nonce that the page's Content-Security-Policy requires for style sheets that are created at run time. */
const nonce = document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";
// The only way to pass it to the library that locks scrolling behind dialogs.
Object.assign(globalThis, { __webpack_nonce__: nonce });

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root.");
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={openQueries()}>
        <Router base={new URL(document.baseURI).pathname.replace(/\/$/, "")}>
          {/* Messages have links. */}
          <Notifications position="bottom-right" />
          <Gate />
        </Router>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
