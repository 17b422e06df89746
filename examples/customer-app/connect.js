// Connecting in a frame of this page. Without script, or without Latchkey's widget, the button beside it leads to Latchkey's
// own page.
const told = document.querySelector(".told");

async function post(path, form = {}) {
  const answer = await fetch(path, { method: "POST", body: new URLSearchParams(form) });
  if (!answer.ok) throw new Error(`Ledgerly answered ${answer.status}`);
  return await answer.json();
}

async function connect({ strategy, name }) {
  const { connection, clientToken, embedUrl } = await post("/embed", { strategy });
  globalThis.Latchkey.open({
    clientToken,
    embedUrl,
    title: `Connect ${name}`,
    // What the widget says is a reason to look. What is so, Ledgerly's server asks Latchkey itself.
    onCompleted: async () => {
      const { isConnected } = await post(`/connections/${connection}/confirm`);
      if (isConnected) location.reload();
    },
    onExit: () => {
      told.textContent = "Not connected.";
    },
    onError: ({ message }) => {
      told.textContent = message;
    },
  });
}

if (globalThis.Latchkey) {
  for (const button of document.querySelectorAll("button.here")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      told.textContent = "";
      connect(button.dataset).catch((error) => {
        told.textContent = String(error.message);
      });
    });
  }
}
