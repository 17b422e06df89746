/**
 * Ways for a page to send something somewhere, each as script in which `u` is where. What a channel needs of the page's own site
 * is at `/helper/…`, with the target in its query.
 */
export const CHANNELS: Readonly<Record<string, string>> = {
  fetch: "fetch(u, { mode: 'no-cors' })",
  fetchPost: "fetch(u, { mode: 'no-cors', method: 'POST', body: 'x' })",
  fetchKeepalive: "fetch(u, { mode: 'no-cors', keepalive: true })",
  fetchLater: "self.fetchLater?.(u, { activateAfter: 0 })",
  xhr: "{ const x = new XMLHttpRequest(); x.open('GET', u); x.send(); }",
  beacon: "navigator.sendBeacon(u, 'x')",
  eventSource: "new EventSource(u)",
  webSocket: "new WebSocket(u.replace(/^http/, 'ws'))",
  image: "new Image().src = u",
  imageSet: "add('img', { srcset: u + ' 1x' })",
  picture: "document.body.insertAdjacentHTML('beforeend', `<picture><source srcset='${u}'><img></picture>`)",
  svgImage: "document.body.insertAdjacentHTML('beforeend', `<svg><image href='${u}'/></svg>`)",
  inputImage: "add('input', { type: 'image', src: u })",
  video: "add('video', { src: u })",
  poster: "add('video', { poster: u })",
  audio: "add('audio', { src: u, preload: 'auto' })",
  track:
    "{ const v = add('video', { crossOrigin: 'anonymous' }); v.innerHTML = `<track default kind=subtitles src='${u}'>`; v.textTracks[0].mode = 'showing'; }",
  script: "add('script', { src: u })",
  moduleScript: "add('script', { type: 'module', src: u })",
  dynamicImport: "import(u).catch(() => {})",
  worker: "new Worker('/helper/worker?u=' + encodeURIComponent(u))",
  workerImport: "new Worker('/helper/worker-import?u=' + encodeURIComponent(u))",
  sharedWorker: "new SharedWorker('/helper/worker?u=' + encodeURIComponent(u))",
  blobWorker: "new Worker(URL.createObjectURL(new Blob([`fetch('${u}', { mode: 'no-cors' })`])))",
  stylesheet: "add('link', { rel: 'stylesheet', href: u })",
  styleImport: "add('style', { textContent: `@import '${u}';` })",
  background: "add('div', { textContent: 'x' }).style.background = `url('${u}')`",
  font: "document.fonts.load('10px f', 'x'), new FontFace('f', `url('${u}')`).load().catch(() => {})",
  icon: "add('link', { rel: 'icon', href: u })",
  manifest: "add('link', { rel: 'manifest', href: u })",
  prefetch: "add('link', { rel: 'prefetch', href: u })",
  preload: "add('link', { rel: 'preload', as: 'image', href: u })",
  modulePreload: "add('link', { rel: 'modulepreload', href: u })",
  preconnect: "add('link', { rel: 'preconnect', href: u })",
  dnsPrefetch: "add('link', { rel: 'dns-prefetch', href: u })",
  speculation:
    "add('script', { type: 'speculationrules', textContent: JSON.stringify({ prefetch: [{ source: 'list', urls: [u] }], prerender: [{ source: 'list', urls: [u] }] }) })",
  ping: "{ const a = add('a', { href: '#x', ping: u }); a.click(); }",
  frame: "add('iframe', { src: u })",
  frameRefresh: "add('iframe', { srcdoc: `<meta http-equiv=refresh content='0;url=${u}'>` })",
  frameRedirect: "add('iframe', { src: '/helper/redirect?u=' + encodeURIComponent(u) })",
  frameLocation: "add('iframe', {}).contentWindow.location = u",
  object: "add('object', { data: u })",
  embed: "add('embed', { src: u })",
  form: "{ const i = add('iframe', { name: 'g' + n }); const f = add('form', { action: u, target: 'g' + n }); f.submit(); }",
  formPost:
    "{ const i = add('iframe', { name: 'f' + n }); const f = add('form', { action: u, target: 'f' + n, method: 'POST' }); f.submit(); }",
  window: "window.open(u)",
  windowRedirect: "window.open('/helper/redirect?u=' + encodeURIComponent(u))",
  redirect: "fetch('/helper/redirect?u=' + encodeURIComponent(u), { mode: 'no-cors' })",
  imageRedirect: "new Image().src = '/helper/redirect?u=' + encodeURIComponent(u)",
  webTransport: "try { new WebTransport(u.replace(/^http:/, 'https:')).ready.catch(() => {}) } catch {}",
  report: "add('iframe', { src: '/helper/report?u=' + encodeURIComponent(u) })",
  download:
    "{ add('iframe', { name: 'd' + n }); const a = add('a', { href: u, download: 'x', target: 'd' + n }); a.click(); }",
  webRtc: `{
    const { hostname, port } = new URL(u);
    const p = new RTCPeerConnection({ iceServers: [
      { urls: 'stun:' + hostname + ':' + port },
      { urls: ['turn:' + hostname + ':' + port + '?transport=udp', 'turn:' + hostname + ':' + port + '?transport=tcp'], username: 'u', credential: 'c' },
    ] });
    p.createDataChannel('d');
    p.createOffer().then((o) => p.setLocalDescription(o)).then(() => p.setRemoteDescription({ type: 'answer', sdp: p.localDescription.sdp.replace('a=setup:actpass', 'a=setup:active') })).then(() => p.addIceCandidate({ candidate: 'candidate:1 1 udp 2122260223 ' + hostname + ' ' + port + ' typ host', sdpMid: '0' })).catch(() => {});
    (self.kept ??= []).push(p);
  }`,
};

/** The page that tries all of them, with every target. `window.tried` becomes true when the last one was begun. */
export function hostilePage(targets: readonly string[]): string {
  const calls = Object.entries(CHANNELS).flatMap(([name, code]) =>
    targets.map((target) => `(u, n) => { ${code} }, ${JSON.stringify(`${target}/${name}`)}`),
  );
  return `<!doctype html><title>hostile</title><body><script>
    const add = (name, given) => { const e = document.createElement(name); Object.assign(e, given); document.body.append(e); return e; };
    let n = 0;
    const go = (channel, u) => { n++; try { channel(u, n); } catch {} };
    ${calls.map((call) => `go(${call});`).join("\n")}
    window.tried = true;
  </script>`;
}

/** What the site has at `/helper/…`. */
export function helper(
  path: string,
): { status: number; headers: Record<string, string>; body: string } | null {
  const { pathname, searchParams } = new URL(path, "http://site");
  const u = searchParams.get("u") ?? "";
  const script = { "content-type": "text/javascript" };
  switch (pathname) {
    case "/helper/worker":
      return { status: 200, headers: script, body: `fetch(${JSON.stringify(u)}, { mode: 'no-cors' })` };
    case "/helper/worker-import":
      return { status: 200, headers: script, body: `importScripts(${JSON.stringify(u)})` };
    case "/helper/redirect":
      return { status: 302, headers: { location: u }, body: "" };
    case "/helper/report":
      return {
        status: 200,
        headers: {
          "content-type": "text/html",
          "content-security-policy": `img-src 'none'; report-uri ${u}`,
          "reporting-endpoints": `default="${u}"`,
          nel: '{"report_to":"default","max_age":60,"success_fraction":1.0}',
        },
        body: "<img src=/never.png>",
      };
    default:
      return null;
  }
}
