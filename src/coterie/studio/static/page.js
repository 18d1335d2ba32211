// Functions that all parts of the page use. Texts from tables become text nodes, never markup.

export const $ = (id) => document.getElementById(id);

export function make(name, settings = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(settings)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && !key.includes("-")) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function number(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  const size = Math.abs(value);
  if (size < 1e-12) return "0"; // a rounding error
  if (size >= 1e12 || (size > 0 && size < 1e-4)) return value.toExponential(2);
  if (size >= 1e4) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(4)));
}

export const count = (value) => value.toLocaleString("en");
export const plural = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
export const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
export const calm = matchMedia("(prefers-reduced-motion: reduce)");

// Colours come from the studio, so that page, report and pictures agree.
export const look = { palette: [], outlier: "#777777" };

// From the eighth cluster on colours repeat: lighter, then darker, and with another marker.
export function colour(label) {
  if (label < 0) return look.outlier;
  const plain = look.palette[label % look.palette.length];
  const round = Math.floor(label / look.palette.length);
  if (!round) return plain;
  const parts = [1, 3, 5].map((i) => parseInt(plain.slice(i, i + 2), 16));
  return `rgb(${parts.map((part) => Math.round(round % 2 ? part + (255 - part) * 0.5 : part * 0.6)).join(",")})`;
}

export function dot(label) {
  const mark = make("span", { class: `dot shape${label < 0 ? "-out" : Math.floor(label / look.palette.length) % 7}`, "aria-hidden": "true" });
  mark.style.backgroundColor = colour(label);
  return mark;
}

// Names that the user gave to the clusters of the run that is shown.
export const called = { names: {} };
export const clusterName = (label) => (label < 0 ? "outliers" : called.names[label] || `cluster ${label}`);

export function alertWith(sentence) {
  const box = $("alert");
  box.querySelector("p").textContent = sentence;
  box.hidden = !sentence;
  if (sentence) box.scrollIntoView({ block: "nearest" });
}

export const say = (sentence) => { $("status").textContent = sentence; };

export async function trying(work) {
  try {
    return await work();
  } catch (error) {
    alertWith(error.message);
    say("");
    return undefined;
  }
}

export function theme() {
  const button = $("theme");
  const names = ["automatic", "light", "dark"];
  const show = (name) => {
    if (name === "automatic") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
    dispatchEvent(new Event("themechange"));
  };
  let current = localStorage.getItem("coterie-studio-theme") || "automatic";
  if (!names.includes(current)) current = "automatic";
  show(current);
  button.addEventListener("click", () => {
    current = names[(names.indexOf(current) + 1) % names.length];
    localStorage.setItem("coterie-studio-theme", current);
    show(current);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("themechange")));
}
