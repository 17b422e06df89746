import { html } from "hono/html";
import { type Html, htmlDocument } from "./pages.ts";
import type { Shipment } from "./shipments.ts";

/** Nothing but a place for the script to draw in. */
export const shipmentsPage = (): Html =>
  htmlDocument(
    "Shipments",
    html`<div id="root">
        <noscript><p class="card">Please switch JavaScript on to see your shipments.</p></noscript>
      </div>
      <script type="module" src="/shipments/page.js"></script>`,
  );

/** In a frame of the page, as carriers have it: everybody may see where a parcel is who knows its number. */
export const trackingPage = (shipment: Shipment | undefined): Html =>
  htmlDocument(
    "Tracking",
    shipment === undefined
      ? html`<p>There is no such shipment.</p>`
      : html`<ol class="tracking">
          <li>Handed over to <b class="carrier">${shipment.carrier}</b></li>
          <li>
            ${shipment.status === "delivered" ? "Delivered in" : "On the way to"}
            <b class="place">${shipment.destination}</b>
          </li>
        </ol>`,
  );
