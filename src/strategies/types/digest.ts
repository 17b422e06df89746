import { checkUserAndPassword, readUserAndPassword, userAndPassword } from "#strategies/user-and-password.ts";
import { withCheck } from "#strategies/http/with-check.ts";

/** docs/logins/digest.md. RFC 7616; the requests are answered by `engine/login/digest-session.ts`. */
export const login = withCheck({
  type: "digest",
  description: "HTTP Digest: each request proves knowledge of the password without sending it.",
  schema: userAndPassword,
  check: checkUserAndPassword,
  login(context, config) {
    const digest = readUserAndPassword(context, config, "Digest");
    return Promise.resolve({ headers: {}, cookies: null, digest });
  },
});
