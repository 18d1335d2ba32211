// Where tables come from: a file that is dropped or chosen, a sample, or points drawn by hand.

import * as api from "./api.js";
import { $, alertWith, count, make, number, plural, say, trying } from "./page.js";

const tables = new Map();
let current = null;
let limits = {};
let tell = {};

export function open(state, listeners) {
  limits = state.limits;
  tell = listeners;
  for (const table of state.tables) tables.set(table.id, table);
  $("samples").replaceChildren(
    ...state.samples.map((one) =>
      make("button", { type: "button", class: "chip", title: one.about, onclick: () => take(one) }, one.title)),
  );
  $("tiles").replaceChildren(
    ...state.samples.map((one) => tile(one.title, one.about, () => take(one))),
    tile("Draw points", "with the mouse, a finger or the keyboard", () => $("open-drawing").click()),
  );
  $("open-drawing").addEventListener("click", () => {
    hideStart();
    tell.onDraw();
  });
  $("file").addEventListener("change", (event) => {
    if (event.target.files.length) read(event.target.files[0]);
    event.target.value = "";
  });
  $("drop-missing").addEventListener("change", showChosen);
  $("columns").addEventListener("change", showChosen);
  for (const [id, on] of [["all-columns", true], ["no-columns", false]]) {
    $(id).addEventListener("click", () => {
      for (const box of $("columns").querySelectorAll("input:enabled")) box.checked = on;
      showChosen();
    });
  }
  listenForDrops();
}

const tile = (title, about, onclick) =>
  make("button", { type: "button", class: "tile", onclick }, make("strong", {}, title), make("span", {}, about));

function listenForDrops() {
  const drop = $("drop");
  for (const name of ["dragover", "dragenter"]) {
    addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (file) read(file);
  });
}

async function busy(sentence, work) {
  alertWith("");
  say(sentence);
  $("choices").setAttribute("aria-busy", "true");
  const table = await trying(work);
  $("choices").removeAttribute("aria-busy");
  if (!table) return;
  say("");
  tables.set(table.id, table);
  select(table.id);
}

const read = (file, header = "") => {
  if (file.size > limits.upload_bytes) {
    alertWith(`${file.name} is larger than ${Math.round(limits.upload_bytes / 2 ** 20)} MB, the limit of the studio: use coterie cluster.`);
    return undefined;
  }
  return busy(`Reading ${file.name} …`, async () => {
    const table = await api.upload(file.name, header, file);
    return { ...table, again: (other) => read(file, other) };
  });
};

const take = (one) => busy(`Opening ${one.title} …`, () => api.post(`samples/${one.name}`));

export const add = (points) => busy("Reading the points …", () => api.post("points", { points }));

function hideStart() {
  for (const id of ["welcome", "preview", "drawing"]) $(id).hidden = true;
}

export function select(id) {
  current = tables.get(id);
  hideStart();
  for (const part of ["columns-part", "settings-part", "go", "preview"]) $(part).hidden = !current;
  $("drop").classList.toggle("compact", Boolean(current));
  showTables();
  if (!current) {
    $("welcome").hidden = false;
    return;
  }
  showColumns();
  showPreview();
  tell.onTable(current);
}

async function close(id) {
  await trying(() => api.remove(`tables/${id}`));
  tables.delete(id);
  tell.onClose(id);
  const left = [...tables.keys()];
  select(current && current.id !== id ? current.id : left[left.length - 1]);
}

function showTables() {
  $("tables").replaceChildren(
    ...[...tables.values()].map((table) =>
      make("li", { class: current && table.id === current.id ? "current" : "" },
        make("button", {
          type: "button", class: "table-name", "aria-current": current && table.id === current.id ? "true" : null,
          onclick: () => select(table.id),
        }, make("strong", {}, table.name), make("span", {}, `${plural(table.rows, "row")}, ${plural(table.columns.length, "column")}`)),
        make("button", { type: "button", class: "quiet close", "aria-label": `Close ${table.name}`, onclick: () => close(table.id) }, "×"))),
  );
}

const KINDS = ["number", "count", "ordinal", "category", "date", "latitude", "longitude", "id", "text"];
const USABLE = ["number", "count", "ordinal", "category", "date", "cycle", "latitude", "longitude"];

function showColumns() {
  $("columns").replaceChildren(...current.columns.map(columnLine));
  showChosen();
}

// A box that says whether a column is used, and a menu with its kind. An id can be ticked: it is then used as a number.
function columnLine(column) {
  const able = (kind) => USABLE.includes(kind) || (kind === column.kind && kind === "id");
  const box = make("input", { type: "checkbox", value: column.name, checked: column.used, disabled: !able(column.kind) });
  const line = make("label", { class: `check column${column.used ? "" : " unusable"}`, title: `${column.name}: ${aboutColumn(column)}; ${column.why}` }, box,
    make("span", {}, make("span", { class: "name" }, column.name), make("small", {}, aboutColumn(column))));
  if (column.kind === "empty") return make("div", { class: "column-line" }, line);
  const menu = make("select", { class: "kind", "aria-label": `Kind of ${column.name}`, "data-column": column.name, "data-guess": column.kind },
    ...[...new Set([...KINDS, column.kind])].map((kind) => make("option", { value: kind, selected: kind === column.kind }, kind)));
  menu.addEventListener("change", () => {
    box.disabled = !able(menu.value);
    box.checked = menu.value === column.kind ? column.used : USABLE.includes(menu.value);
    line.classList.toggle("unusable", !box.checked);
    showChosen();
  });
  return make("div", { class: "column-line" }, line, menu);
}

function aboutColumn(column) {
  const missing = column.missing ? `, ${count(column.missing)} missing` : "";
  if (column.part_of) return `part of ${column.part_of}`;
  if (column.values) return column.values + missing;
  return "no values";
}

function showChosen() {
  const chosen = new Set(chosenColumns());
  $("columns-told").textContent = `${chosen.size} of ${current.columns.length}`;
  const missing = current.columns.filter((column) => chosen.has(column.name)).reduce((most, column) => Math.max(most, column.missing), 0);
  $("drop-missing-line").hidden = !missing;
  $("drop-missing-told").textContent = `Leave out rows with missing values (at least ${count(missing)}); otherwise they are filled`;
}

export const chosenColumns = () => [...$("columns").querySelectorAll("input:checked")].map((box) => box.value);
// The kinds that differ from what was guessed.
export const chosenKinds = () =>
  Object.fromEntries([...$("columns").querySelectorAll("select.kind")].filter((menu) => menu.value !== menu.dataset.guess)
    .map((menu) => [menu.dataset.column, menu.value]));
export const dropMissing = () => !$("drop-missing-line").hidden && $("drop-missing").checked;

function showPreview() {
  $("title-preview").textContent = current.name;
  const told = [...current.notes];
  if (current.preview.length < current.rows) told.push(`These are the first ${current.preview.length} of ${plural(current.rows, "row")}.`);
  $("preview-told").replaceChildren(told.join(" "));
  if (current.again && current.notes.some((note) => note.includes("--header"))) {
    $("preview-told").append(" ", make("button", { type: "button", class: "quiet", onclick: () => current.again("yes") }, "It contains names: read it again"));
  }
  fill($("preview-table"), current.columns.map((column) => column.name), current.preview);
}

// A table of texts and numbers; numbers are aligned to the right.
export function fill(table, heads, rows, first = null) {
  const cell = (value) => make("td", { class: typeof value === "number" ? "number" : "word" }, value === null ? "" : number(value));
  table.replaceChildren(
    make("thead", {}, make("tr", {}, first ? make("th", { scope: "col" }, first.head) : null,
      ...heads.map((head, i) => make("th", { scope: "col", class: rows.length && typeof rows[0][i] === "number" ? "number" : "" }, head)))),
    make("tbody", {}, ...rows.map((row, i) =>
      make("tr", {}, first ? make("th", { scope: "row", class: "number" }, count(first.cells[i])) : null, ...row.map(cell)))),
  );
}
