// Requests to the studio. The token is sent in a header, never in an address.

const KEY = "coterie-studio-token";

function findToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) || "";
}

const token = findToken();

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function send(method, path, body, signal) {
  let answer;
  try {
    answer = await fetch(`api/${path}`, { method, body, signal, headers: { Authorization: `Bearer ${token}` } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The studio does not respond. Check that it is still running in the terminal.", 0);
  }
  if (answer.ok) return answer;
  let sentence = `The studio answered ${answer.status}.`;
  try {
    sentence = (await answer.json()).error || sentence;
  } catch { /* no JSON: the status is all there is */ }
  throw new Refused(sentence, answer.status);
}

export const get = async (path) => (await send("GET", path)).json();
export const post = async (path, document) =>
  (await send("POST", path, document === undefined ? "" : JSON.stringify(document))).json();
export const remove = (path) => send("DELETE", path);
export const upload = async (name, header, file) =>
  (await send("POST", `tables?name=${encodeURIComponent(name)}&header=${header}`, file)).json();

export async function events(path, onStatus, signal) {
  const answer = await send("GET", path, undefined, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) onStatus(JSON.parse(part.slice(6)));
  }
}

export async function keep(path) {
  const answer = await send("GET", path);
  const named = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") || "");
  save(await answer.blob(), named ? named[1] : "coterie");
}

export async function picture(path) {
  const blob = await (await send("GET", path)).blob();
  return new Promise((done) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => done(reader.result));
    reader.readAsDataURL(blob);
  });
}

export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

export function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Kind(bytes.buffer);
}
