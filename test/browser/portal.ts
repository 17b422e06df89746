import type { Answer, Target } from "../documents/target.ts";

export const EMAIL = "dana@example.com";
export const PASSWORD = "canary-password-5f1e";
export const TOKEN = "canary-token-0123456789abcdef";

/** Tells the target what the portal answers: a sign-in that is drawn by script, and data that only script can show. */
export function openPortal(
  target: Target,
  { hasCode = () => false }: { readonly hasCode?: () => boolean } = {},
): { endSessions(): void } {
  let isOver = false;
  const page: Answer = { html: PAGE };
  for (const path of [
    "/login",
    "/invoices",
    "/statement",
    "/twins",
    "/robot",
    "/opener",
    "/window",
    "/covered",
  ])
    target.on(`GET ${path}`, page);
  target.on("GET /frame", {
    html: "<label>Search <input oninput=\"echo.textContent = 'echo: ' + this.value\"></label><p id=echo></p>",
  });
  target.on("POST /session", ({ body }) => {
    const { email, password, code } = JSON.parse(body) as Readonly<Record<string, string>>;
    if (email !== EMAIL || password !== PASSWORD) return { status: 401, json: {} };
    isOver = false;
    if (hasCode() && code === undefined) return { json: { needs: "code" } };
    return {
      json: { token: TOKEN },
      headers: { "set-cookie": "sid=canary-cookie-778899; Path=/; HttpOnly; Max-Age=3600" },
    };
  });
  target.on("GET /api/me", ({ headers }) => ({
    status: headers.authorization === `Bearer ${TOKEN}` ? 200 : 401,
    json: {},
  }));
  target.on("GET /api/invoices", ({ headers, query }) => {
    if (isOver || headers.authorization !== `Bearer ${TOKEN}`) return { status: 401, json: {} };
    const number = Number(query.get("page") ?? 1);
    const items = [1, 2, 3].map((each) => ({
      no: `INV-${number}${each}`,
      total: `${number * 100 + each}.50`,
    }));
    return { json: { items, pages: 3 }, delayMs: 30 };
  });
  target.on("GET /api/items", ({ headers, query }) =>
    headers.authorization === `Bearer ${TOKEN}` && headers.cookie === "sid=canary-cookie-778899"
      ? {
          json: {
            items: Array.from({ length: 1_000 }, (_, index) => ({
              id: Number(query.get("page")) * 1_000 + index,
            })),
            next: Number(query.get("page")) < 9 ? Number(query.get("page")) + 1 : null,
          },
        }
      : { status: 401, json: {} },
  );
  return { endSessions: () => void (isOver = true) };
}

const PAGE = `<!doctype html><title>Portal</title><main></main><script>
const main = document.querySelector("main");
const draw = (html) => { main.innerHTML = html; };
const later = (work) => setTimeout(work, 30);
const banner = () => {
  const over = document.createElement("div");
  over.style = "position:fixed;inset:0;background:#fff8";
  over.innerHTML = "<p>We use cookies.</p><button>Accept all</button>";
  over.querySelector("button").onclick = () => over.remove();
  document.body.append(over);
};
const pages = {
  "/login"() {
    later(() => {
      draw('<h1>Welcome</h1><form><label>Email <input name=email></label><label>Password <input type=password name=password></label><button>Sign in</button></form><p id=note></p><button>Sign up</button>');
      later(banner);
      main.querySelector("form").onsubmit = async (event) => {
        event.preventDefault();
        const values = Object.fromEntries(new FormData(event.target));
        const answer = await fetch("/session", { method: "POST", body: JSON.stringify(values) });
        if (answer.status === 401) return void (document.querySelector("#note").textContent = "Wrong email or password");
        const { token, needs } = await answer.json();
        if (needs === "code") {
          event.target.insertAdjacentHTML("beforeend", "<label>One-time code <input name=code></label>");
          return void (event.target.querySelector("button").textContent = "Verify");
        }
        sessionStorage.token = token;
        localStorage.setItem("auth-tokens", JSON.stringify({ access: token }));
        later(() => draw("<h1>Dashboard</h1>"));
      };
    });
  },
  "/invoices"() {
    const { token } = sessionStorage;
    if (!token) return void (location.href = "/login");
    const show = async (number) => {
      const answer = await fetch("/api/invoices?page=" + number, { headers: { authorization: "Bearer " + token } });
      if (answer.status === 401) return void (location.href = "/login");
      const { items, pages } = await answer.json();
      const rows = items.map(({ no, total }) => '<tr><td class=no>' + no + '<td class=total> ' + total + ' <td><a class=pdf href="/pdf/' + no + '">PDF</a><td><button>Details</button><i></i>');
      draw('<h1>Invoices</h1><table><tbody>' + rows.join("") + '</table><button id=next' + (number < pages ? "" : " disabled") + '>Next</button>');
      main.querySelector("#next").onclick = () => show(number + 1);
      for (const button of main.querySelectorAll("tbody button"))
        button.onclick = () => later(() => (button.nextSibling.textContent = "IBAN of " + button.closest("tr").cells[0].textContent));
    };
    void show(1);
  },
  "/statement"() {
    draw('<h1>Statement</h1><label>Year <select><option>2024<option>2025</select></label><label><input type=checkbox checked> Drafts</label><label>Search <input id=q></label><iframe src="/frame"></iframe><p id=out></p><button id=ask>Ask</button><div id=menu>Menu</div>');
    const out = document.querySelector("#out");
    const say = (text) => (out.textContent += text + ";");
    document.querySelector("select").onchange = (event) => say(event.target.value);
    document.querySelector("input[type=checkbox]").onchange = (event) => say("drafts " + event.target.checked);
    document.querySelector("#q").onkeydown = (event) => say(event.key);
    document.querySelector("#ask").onclick = () => say(confirm("Sure?") ? "sure" : "not sure");
    document.querySelector("#menu").onmouseenter = () => say("menu");
  },
  "/twins"() { draw("<button>Save draft</button><button>Save all</button><button disabled>Send</button>"); },
  "/covered"() {
    draw('<button>Show</button><p id=shown></p>');
    main.querySelector("button").onclick = () => (document.querySelector("#shown").textContent = "shown");
    banner();
  },
  "/opener"() {
    draw('<button>Choose</button><p id=chosen></p>');
    main.querySelector("button").onclick = () => open("/window");
  },
  "/window"() {
    draw('<label>Name <input></label><button>OK</button>');
    main.querySelector("button").onclick = () => {
      opener.document.querySelector("#chosen").textContent = main.querySelector("input").value;
    };
  },
  "/robot"() { draw('<h1>Are you human?</h1><div class="h-captcha" style="width:9em;height:3em">…</div>'); },
};
pages[location.pathname]();
</script>`;
