import assert from "node:assert/strict";
import { test } from "node:test";
import { loginNameOf } from "#domain/login-name.ts";
import { strategyField } from "./strategy-field.ts";

const tenant = strategyField({ key: "tenant", type: "text" });
const user = strategyField({ key: "user", type: "text", autocomplete: "username" });
const code = strategyField({ key: "code", type: "text", secret: true });
const password = strategyField({ key: "password", type: "password", secret: true });
const typed = new Map([
  ["tenant", "north"],
  ["user", "  Ada@Acme.example "],
  ["code", "4711"],
  ["password", "Correct Horse"],
]);

for (const [what, fields, login, name] of [
  ["what the login calls so", [user, tenant], { username: "tenant" }, "north"],
  ["what a password manager fills in", [tenant, user], {}, "ada@acme.example"],
  ["else the first plain field", [code, password, tenant], {}, "north"],
  ["never a secret", [code, password], { username: "code" }, null],
  ["nothing where it was left empty", [strategyField({ key: "other", type: "email" })], {}, null],
] as const)
  test(`the name of a login is ${what}`, () => {
    assert.equal(loginNameOf({ fields, login: { type: "basic", ...login } }, typed), name);
  });
