// Calls of the server with the session's cookie. What changes something carries the session's second token.

let csrf = "";
// The page comes with its session, if there is one.
let given = document.querySelector('meta[name="session"]').content;

/** What the session is, or null where a login is needed. */
export async function session() {
  const first = given;
  given = "";
  if (first !== "") return begun(JSON.parse(first));
  const response = await fetch("console/session", { headers: { accept: "application/json" } });
  if (response.status === 401) return null;
  return begun(await read(response));
}

export async function login(key) {
  return begun(await read(await send("console/login", "POST", { key })));
}

export async function logout() {
  await read(await send("console/logout", "POST", {}));
}

function begun(found) {
  csrf = found.csrf;
  return found;
}

function send(path, method, body, signal) {
  const headers = { accept: "application/json", "x-csrf-token": csrf };
  if (body !== undefined) headers["content-type"] = "application/json";
  return fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal });
}

/** The answer, or an error with the server's words. */
async function read(response) {
  const text = await response.text();
  let answer = null;
  try { answer = text === "" ? null : JSON.parse(text); } catch { /* said below */ }
  if (response.ok) return answer;
  if (response.status === 401 && !response.url.endsWith("/console/login")) dispatchEvent(new Event("loggedout"));
  const detail = answer?.detail ?? answer?.error?.message ?? answer?.message ?? `${response.status} ${response.statusText}`;
  throw new Error(typeof detail === "string" ? detail : JSON.stringify(detail));
}

export const get = async (path, signal) => read(await send(path, "GET", undefined, signal));
export const post = async (path, body) => read(await send(path, "POST", body ?? {}));
export const put = async (path, body) => read(await send(path, "PUT", body));
export const remove = async (path) => read(await send(path, "DELETE"));

/** How long after the end of a stream another is opened, in ms. */
const AGAIN = 1500;

/** Follows events until the page is left, or hidden: a browser has few connections to a server. `query` is called for each
 *  stream, and says what has been seen by then. */
export function follow(query, handlers, signal) {
  let source = null, timer = 0;
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const open = () => {
    close();
    if (signal.aborted || document.hidden) return;
    source = new EventSource(`console/data/events?${new URLSearchParams(query())}`);
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
    }
    // Left alone, the browser would ask for the same again, and after a refusal never.
    source.addEventListener("error", async () => {
      close();
      timer = setTimeout(open, AGAIN);
      if ((await session().catch(() => undefined)) === null) dispatchEvent(new Event("loggedout"));
    });
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()), { signal });
  signal.addEventListener("abort", close);
  open();
}

/** The events of a streamed answer of the compatible APIs. */
export async function* stream(path, body, signal) {
  const response = await send(path, "POST", body, signal);
  if (!response.ok) await read(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
    }
  }
}
