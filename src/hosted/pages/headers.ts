/** `form`: a page whose submit can leave the service. `page`: every other. */
export type HostedPageKind = "form" | "page";

/** Only our own files; script on forms alone, which it improves. */
const contentSecurityPolicy = (kind: HostedPageKind): readonly string[] => [
  "default-src 'none'",
  "style-src 'self'",
  kind === "form" ? "script-src 'self'" : "script-src 'none'",
  "img-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  ...(kind === "form" ? [] : ["form-action 'none'"]),
];

/** Only names that Chromium knows on every system: it complains of others in the console. */
const NO_FEATURES =
  "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), " +
  "geolocation=(), gyroscope=(), hid=(), idle-detection=(), local-fonts=(), magnetometer=(), microphone=(), midi=(), " +
  "payment=(), picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), storage-access=(), " +
  "usb=(), xr-spatial-tracking=()";

/**
 * The headers of every hosted page and redirect. Design, page 6, 5.4, as page 1 amends it.
 *
 * A form has no `form-action`: Chromium applies it to every hop after the submit, so that a `return_url` which itself
 * redirects would strand the user. `Referrer-Policy` is `same-origin`: with `no-referrer` Chromium sends `Origin: null`.
 */
export function hostedHeaders(kind: HostedPageKind): Readonly<Record<string, string>> {
  return {
    "Content-Security-Policy": contentSecurityPolicy(kind).join("; "),
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": NO_FEATURES,
    "Strict-Transport-Security": "max-age=63072000",
    "X-Robots-Tag": "noindex",
  };
}
