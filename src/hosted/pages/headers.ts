/**
 * `form`: a page whose form may redirect to another site. `window`: a page in a window that a frame has opened. `frame`: an
 * embedded flow, which pages of exactly one origin may embed. `page`: any other page.
 */
export type HostedPageKind = "form" | "page" | "window" | { readonly frameOf: string };

/** Only our own files. Scripts only on forms, which they enhance. */
function contentSecurityPolicy(kind: HostedPageKind): readonly string[] {
  const frameOf = typeof kind === "object" ? kind.frameOf : null;
  return [
    "default-src 'none'",
    "style-src 'self'",
    kind === "page" ? "script-src 'none'" : "script-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    // docs/decisions/0019: every ancestor is checked, so that an allowed page inside a malicious one is refused.
    `frame-ancestors ${frameOf ?? "'none'"}`,
    "require-trusted-types-for 'script'",
    // A form asks whether the service can be reached before it is sent.
    ...(kind === "form" || frameOf !== null ? ["connect-src 'self'"] : []),
    ...(frameOf === null ? [] : ["trusted-types latchkey"]),
    ...(kind === "form" || frameOf !== null ? [] : ["form-action 'none'"]),
  ];
}

/** Only names that Chromium knows on every system, because it logs warnings about others. */
const NO_FEATURES =
  "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), " +
  "geolocation=(), gyroscope=(), hid=(), idle-detection=(), local-fonts=(), magnetometer=(), microphone=(), midi=(), " +
  "payment=(), picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), storage-access=(), " +
  "usb=(), xr-spatial-tracking=()";

/**
 * The headers of every hosted page and redirect. docs/decisions/0017.
 *
 * A form has no `form-action`: Chromium applies it to every hop after the submit, so that a `return_url` which itself
 * redirects would strand the user. `Referrer-Policy` is `same-origin`: with `no-referrer` Chromium sends `Origin: null`.
 */
export function hostedHeaders(kind: HostedPageKind): Readonly<Record<string, string>> {
  // A window opened by a frame must remain accessible to the frame, which closes it; a frame may be in a cross-origin isolated page.
  const opener = kind === "window" ? "unsafe-none" : "same-origin";
  const isFrame = typeof kind === "object";
  return {
    "Content-Security-Policy": contentSecurityPolicy(kind).join("; "),
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": opener,
    "Cross-Origin-Resource-Policy": isFrame ? "cross-origin" : "same-origin",
    ...(isFrame && { "Cross-Origin-Embedder-Policy": "require-corp" }),
    "Permissions-Policy": NO_FEATURES,
    "Strict-Transport-Security": "max-age=63072000",
    "X-Robots-Tag": "noindex",
  };
}
