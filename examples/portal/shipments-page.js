// The page of the shipments, drawn by script. It has what makes such pages hard to read by machine: nothing is in the HTML, ids are
// others each time, a banner comes when one does not expect it, a button asks back, and the table is drawn anew all the time.

const API = "/shipments/api";
const CONSENT_AFTER_MS = 250;
const REDRAW_EVERY_MS = 400;
const root = document.querySelector("#root");
const store = {
  get session() {
    return JSON.parse(sessionStorage.getItem("northwind-session") ?? "null");
  },
  set session(session) {
    if (session === null) sessionStorage.removeItem("northwind-session");
    else sessionStorage.setItem("northwind-session", JSON.stringify(session));
  },
};

/** Makes an element. Properties that begin with `on` are listeners, others attributes; ids differ on every load, as those of bundlers do. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const newId = () => `_${Math.random().toString(36).slice(2, 8)}`;

function field(label, properties) {
  const id = newId();
  return [make("label", { for: id }, label), make("input", { id, required: true, ...properties })];
}

async function ask(path, options = {}) {
  const { token } = store.session ?? {};
  const answer = await fetch(API + path, {
    ...options,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(options.body && { "content-type": "application/json" }),
    },
  });
  if (answer.status === 401 && token) {
    store.session = null;
    go("/shipments/sign-in");
  }
  return answer;
}

function go(path) {
  history.pushState(null, "", path);
  draw();
}

function alertWith(text) {
  return make("p", { class: "alert", role: "alert", hidden: text === "" }, text);
}

const brand = () => {
  const link = make("a", { class: "brand", href: "/shipments" });
  link.append(make("span", { class: "mark", "aria-hidden": "true" }, "N"), "Northwind Supplier Portal");
  return link;
};

function drawSignIn() {
  const note = alertWith("");
  const say = (text) => {
    note.textContent = text;
    note.hidden = text === "";
  };
  const button = make("button", { type: "submit" }, "Sign in");
  const form = make(
    "form",
    {
      async onsubmit(event) {
        event.preventDefault();
        say("");
        button.disabled = true;
        const values = Object.fromEntries(new FormData(form));
        const answer = await ask("/session", { method: "POST", body: JSON.stringify(values) });
        const body = await answer.json();
        button.disabled = false;
        if (body.needs === "code") return askForCode(form, button);
        if (!answer.ok) return say(body.error);
        store.session = body;
        go("/shipments");
      },
    },
    ...field("Username", { name: "username", autocomplete: "username", spellcheck: "false" }),
    ...field("Password", { name: "password", type: "password", autocomplete: "current-password" }),
    button,
  );
  const lead = make("p", { class: "lead" }, "See where your shipments are.");
  const card = make("main", { class: "card" }, make("h1", {}, "Sign in to Shipments"), lead, note, form);
  root.replaceChildren(make("header", { class: "bar" }, brand()), card);
}

function askForCode(form, button) {
  const properties = { name: "code", class: "code", inputmode: "numeric", autocomplete: "one-time-code" };
  button.before(...field("One-time code", properties));
  button.textContent = "Continue";
}

/** What the table shows, and what is open beside it. */
const view = { status: "", search: "", page: 1, booking: null, note: "", answer: null };

function drawShipments() {
  const { username } = store.session;
  const sheet = make("div", { class: "sheet" });
  const pager = make("nav", { class: "pager", "aria-label": "Pages" });
  const beside = make("div");
  const load = async () => {
    const turn = (drawn.turn += 1);
    view.answer = null;
    sheet.replaceChildren();
    for (const button of pager.querySelectorAll("button")) button.disabled = true;
    const { status, search, page } = view;
    const answer = await ask(`/list?${new URLSearchParams({ status, search, page })}`);
    const body = await answer.json();
    // An answer may come after that of a later question.
    if (!answer.ok || turn !== drawn.turn) return;
    view.answer = body;
    redraw();
    const { page: shown, pages } = view.answer;
    pager.replaceChildren(
      make("button", { class: "quiet", disabled: shown === 1, onclick: () => turnTo(shown - 1) }, "Previous"),
      make("span", {}, `Page ${shown} of ${pages}`),
      make("button", { class: "quiet", disabled: shown === pages, onclick: () => turnTo(shown + 1) }, "Next"),
    );
  };
  const turnTo = (page) => {
    view.page = page;
    void load();
  };
  const redraw = () => {
    // Who works by keyboard in the table would lose the place.
    if (view.answer === null || sheet.contains(document.activeElement)) return;
    sheet.replaceChildren(tableOf(view.answer, (shipment) => drawBooking(beside, shipment)));
  };
  drawn.timer = setInterval(redraw, REDRAW_EVERY_MS);
  root.replaceChildren(
    headerOf(username),
    make("main", { class: "wide" }, headingOf(), filters(load), sheet, pager, beside),
  );
  void load();
}

const headerOf = (username) =>
  make(
    "header",
    { class: "bar" },
    brand(),
    make(
      "div",
      { class: "account" },
      make("a", { href: "/shipments/pickups" }, "Pickups"),
      make("span", { class: "who" }, username),
      make("button", { class: "quiet", onclick: signOut }, "Sign out"),
    ),
  );

async function signOut() {
  await ask("/session", { method: "DELETE" });
  store.session = null;
  go("/shipments/sign-in");
}

const headingOf = () =>
  make(
    "div",
    { class: "heading" },
    make("h1", {}, "Shipments"),
    make(
      "button",
      {
        class: "quiet",
        async onclick() {
          const file = await (await ask("/export")).blob();
          make("a", { href: URL.createObjectURL(file), download: "shipments.csv" }).click();
        },
      },
      "Export CSV",
    ),
  );

function filters(load) {
  const [status, search] = [newId(), newId()];
  const statuses = ["", "in transit", "delivered", "delayed"];
  const list = make(
    "select",
    {
      id: status,
      onchange() {
        Object.assign(view, { status: list.value, page: 1 });
        void load();
      },
    },
    ...statuses.map((each) =>
      make("option", { value: each, selected: each === view.status }, each === "" ? "All" : each),
    ),
  );
  const box = make("input", {
    id: search,
    value: view.search,
    oninput() {
      Object.assign(view, { search: box.value, page: 1 });
      void load();
    },
  });
  return make(
    "div",
    { class: "filters" },
    make("label", { for: status }, "Status"),
    list,
    make("label", { for: search }, "Search"),
    box,
  );
}

function tableOf({ items, total }, onBook) {
  const heads = ["Number", "Destination", "Carrier", "Status", "Due", "Pickup"];
  const caption = `${total} ${view.status} shipments`.replace("  ", " ");
  return make(
    "table",
    {},
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make(
      "tbody",
      {},
      ...items.map((shipment) =>
        make(
          "tr",
          { class: newId() },
          make("td", {}, shipment.number),
          make("td", {}, shipment.destination),
          make("td", {}, shipment.carrier),
          make(
            "td",
            {},
            make("span", { class: `badge ${shipment.status.replace(" ", "-")}` }, shipment.status),
          ),
          make("td", {}, shipment.due),
          make("td", {}, make("button", { class: "quiet", onclick: () => onBook(shipment) }, "Book pickup")),
        ),
      ),
    ),
  );
}

function drawBooking(place, { number }) {
  const note = alertWith("");
  const form = make(
    "form",
    {
      async onsubmit(event) {
        event.preventDefault();
        const day = form.querySelector("input").value;
        if (!confirm(`Book the pickup of ${number} on ${day}?`)) return;
        const request = { method: "POST", body: JSON.stringify({ shipment: number, day }) };
        // An answer that never comes is an error of the network here, and says nothing of what happened there.
        const answer = await ask("/pickups", request).catch(() => null);
        const body = await answer?.json();
        note.textContent = answer?.ok ? `Pickup ${body.id} is booked.` : (body?.error ?? "No connection.");
        note.className = answer?.ok ? "done" : "alert";
        note.hidden = false;
      },
    },
    ...field("Day", { name: "day", type: "date" }),
    make("button", { type: "submit" }, "Book"),
  );
  const tracking = make("iframe", { title: "Tracking", src: `/shipments/tracking/${number}` });
  const heading = make("h2", {}, `Pickup of ${number}`);
  place.replaceChildren(make("section", { class: "card booking" }, heading, note, form, tracking));
}

async function drawPickups() {
  const { pickups = [] } = await (await ask("/pickups")).json();
  const wanted = new URLSearchParams(location.search).get("shipment");
  const shown = pickups.filter(({ shipment }) => wanted === null || shipment === wanted);
  const rows = shown.map(({ id, shipment, day }) => make("li", {}, `${id}: ${shipment} on ${day}`));
  root.replaceChildren(
    headerOf(store.session?.username ?? ""),
    make(
      "main",
      { class: "wide" },
      make("h1", {}, "Pickups"),
      rows.length > 0
        ? make("ul", {}, ...rows)
        : make("p", {}, `No pickup${wanted ? ` of ${wanted}` : ""} is booked.`),
    ),
  );
}

/** Covers the page until it is answered, once for each browser. */
function askForConsent() {
  if (localStorage.getItem("northwind-consent")) return;
  const accept = make("button", {}, "Accept all");
  const heading = make("h2", {}, "Cookies");
  const text = make("p", {}, "We use cookies to improve your experience.");
  const box = make(
    "div",
    { role: "dialog", "aria-label": "Cookies", class: "consent" },
    heading,
    text,
    accept,
  );
  const cover = make("div", { class: "cover" }, box);
  accept.addEventListener("click", () => {
    localStorage.setItem("northwind-consent", "all");
    cover.remove();
  });
  document.body.append(cover);
}

const drawn = { timer: 0, turn: 0 };

function draw() {
  clearInterval(drawn.timer);
  if (store.session === null) {
    if (location.pathname !== "/shipments/sign-in") history.replaceState(null, "", "/shipments/sign-in");
    drawSignIn();
  } else if (location.pathname === "/shipments/pickups") void drawPickups();
  else drawShipments();
}

addEventListener("popstate", draw);
setTimeout(askForConsent, CONSENT_AFTER_MS);
draw();
