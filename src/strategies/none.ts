import { Type } from "typebox";
import { defineLogin } from "./define-login.ts";

/** Design, page 3, the table of login types: `none`. */
export const login = defineLogin({
  type: "none",
  description: "Logs in nowhere: the fields are only stored.",
  schema: Type.Object({}, { additionalProperties: false }),
  login: () => Promise.resolve({ headers: {}, cookies: null }),
});
