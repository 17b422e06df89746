import { checkUserAndPassword, readUserAndPassword, userAndPassword } from "#strategies/user-and-password.ts";
import { withCheck } from "#strategies/http/with-check.ts";

/** docs/logins/basic.md. RFC 7617, with UTF-8. */
export const login = withCheck({
  type: "basic",
  description: "HTTP Basic: the user name and the password in the Authorization header.",
  schema: userAndPassword,
  check: checkUserAndPassword,
  login(context, config) {
    const { username, password } = readUserAndPassword(context, config, "Basic");
    const token = Buffer.from(`${username}:${password}`, "utf8").toString("base64");
    return Promise.resolve({ headers: { authorization: `Basic ${token}` }, cookies: null });
  },
});
