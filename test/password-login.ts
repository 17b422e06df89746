/**
 * `fields` and `login` of a strategy: a username and a password, which `/login` of the target takes as a form and answers with
 * `status` when they are right. `more`: further keys of the login.
 */
export const passwordLogin = (status: number, more = ""): string => `fields:
  - { key: username, label: Username, type: text, required: true }
  - { key: password, label: Password, type: password, required: true }
login:
  type: http
  steps:
    - request:
        method: POST
        url: /login
        form: { username: "{{ $credential.username }}", password: "{{ $credential.password }}" }
      expect: { status: [${status}] }${more}`;
