// Runs: the settings of the next one, the list of all runs, and their progress.

import * as api from "./api.js";
import { chosenColumns, chosenKinds, dropMissing } from "./data.js";
import { $, alertWith, make, plural, say, trying } from "./page.js";

const PAUSE = 2000;
const runs = new Map();
let algorithms = new Map();
let table = null;
let shown = null;
let stream = null;
let tell = {};

export function open(state, listeners) {
  tell = listeners;
  algorithms = new Map(state.algorithms.map((one) => [one.name, one]));
  $("algorithm").replaceChildren(...state.algorithms.map((one) => make("option", { value: one.name }, one.title)));
  $("criterion").replaceChildren(...state.criteria.map((name) => make("option", { value: name }, name)));
  $("start").replaceChildren(...state.starts.map((name) => make("option", { value: name }, name)));
  $("algorithm").addEventListener("change", showAlgorithm);
  for (const [id, value] of [["most", "auto"], ["clusters", "given"]]) {
    $(id).addEventListener("input", () => { document.querySelector(`input[name=count][value=${value}]`).checked = true; });
  }
  $("choices").addEventListener("submit", (event) => {
    event.preventDefault();
    begin();
  });
  $("stop").addEventListener("click", () => shown && trying(async () => update(await api.post(`runs/${shown}/stop`))));
  for (const run of state.runs) runs.set(run.id, run);
  setInterval(lookAround, PAUSE);
  showAlgorithm();
}

const ended = (run) => !["waiting", "running"].includes(run.state);
const unsettled = (run) => !ended(run) || (run.state === "done" && !run.result);
export const finishedRuns = () => [...runs.values()].filter((run) => run.state === "done" && run.result);

export function useTable(next) {
  table = next;
  const own = [...runs.values()].filter((run) => run.table === next.id);
  showRuns();
  select(own.length ? own[own.length - 1].id : null);
}

export function makeRoom() {
  for (const id of ["runs", "progress"]) $(id).hidden = true;
  shown = null;
  tell.onShow(null);
}

export function forgetTable(id) {
  for (const run of [...runs.values()]) if (run.table === id) runs.delete(run.id);
  table = null;
  showRuns();
  select(null);
}

function showAlgorithm() {
  const one = algorithms.get($("algorithm").value);
  $("algorithm-told").textContent = one.about;
  $("count-part").hidden = !one.counts;
  $("most-part").hidden = one.finds;
  $("outliers-line").hidden = !one.outliers;
  $("sizes-line").hidden = !one.sized;
}

const whole = (id) => ($(id).value === "" ? undefined : Number($(id).value));

async function begin() {
  alertWith("");
  const given = document.querySelector("input[name=count]:checked").value === "given";
  const wanted = {
    table: table.id, columns: chosenColumns(), kinds: chosenKinds(), scale: $("scale").checked, drop_missing: dropMissing(),
    algorithm: $("algorithm").value, criterion: $("criterion").value, start: $("start").value,
    clusters: given ? whole("clusters") ?? 3 : undefined, most: whole("most"), starts: whole("starts"),
    seed: whole("seed"), outliers: $("outliers").value.trim() || undefined, sizes: $("sizes").value.trim() || undefined,
  };
  const run = await trying(() => api.post("runs", wanted));
  if (!run) return;
  adopt(run);
  $("main").scrollIntoView({ block: "start" });
}

// A run that the server has just begun.
export function adopt(run) {
  runs.set(run.id, run);
  showRuns();
  select(run.id);
}

export const counts = (run) => algorithms.get(run.wanted.algorithm).counts;

export const canUndo = (run) => runs.has(run.wanted.edited);

// The run before an edit; the edited one is dropped.
export async function undo(run) {
  await api.remove(`runs/${run.id}`);
  runs.delete(run.id);
  showRuns();
  select(run.wanted.edited);
}

// Browsers limit the connections to a server: only the run that is shown has a stream of its own.
async function follow(run) {
  stream = new AbortController();
  const { signal } = stream;
  try {
    await api.events(`runs/${run.id}/events`, (status) => update({ ...runs.get(run.id), ...status }), signal);
    update(await api.get(`runs/${run.id}`));
  } catch (error) {
    if (!signal.aborted && runs.has(run.id)) alertWith(error.message);
  }
}

// The other runs are polled.
async function lookAround() {
  for (const run of [...runs.values()].filter((one) => unsettled(one) && one.id !== shown)) {
    try {
      update(await api.get(`runs/${run.id}`));
    } catch { /* it is polled again */ }
  }
}

function update(run) {
  const before = runs.get(run.id);
  if (!before) return;
  runs.set(run.id, run);
  if (before.state !== run.state || Boolean(before.result) !== Boolean(run.result)) showRuns();
  if (run.id !== shown) return;
  if (run.state === "done" && run.result) {
    $("progress").hidden = true;
    tell.onShow(run);
    say(`${plural(run.result.clusters.filter((one) => one.label >= 0).length, "cluster")} found`);
  } else if (run.state !== "done") {
    showProgress(run);
  }
}

function select(id) {
  if (stream) stream.abort();
  stream = null;
  shown = id;
  const run = runs.get(id);
  $("progress").hidden = true;
  $("preview").hidden = Boolean(run) || !table;
  for (const button of $("runs").querySelectorAll("button")) {
    if (button.dataset.run === id) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  if (!run) {
    tell.onShow(null);
    return;
  }
  $("drawing").hidden = true;
  if (run.state === "done" && run.result) {
    tell.onShow(run);
  } else {
    tell.onShow(null);
    showProgress(run);
    if (unsettled(run)) follow(run);
  }
}

function title(run) {
  const name = algorithms.get(run.wanted.algorithm).title;
  if (!run.result) return name;
  const edited = run.wanted.edited ? ", edited" : "";
  return `${name}, ${plural(run.result.clusters.filter((one) => one.label >= 0).length, "cluster")}${edited}`;
}

export const runTitle = (run) => `Run ${run.number}: ${title(run)}`;

function showRuns() {
  const own = table ? [...runs.values()].filter((run) => run.table === table.id) : [];
  const words = { waiting: "waiting", running: "running", failed: "failed", stopped: "stopped" };
  $("runs").hidden = !own.length;
  $("runs").replaceChildren(
    ...(own.length ? [make("button", { type: "button", class: "chip", "data-run": "", onclick: () => select(null) }, "Table")] : []),
    ...own.map((run) => make("button", {
      type: "button", class: `chip ${run.state}`, "data-run": run.id, "aria-current": run.id === shown ? "true" : null,
      onclick: () => select(run.id),
    }, runTitle(run), words[run.state] ? make("em", {}, ` ${words[run.state]}`) : null)),
  );
}

function showProgress(run) {
  const { progress } = run;
  const box = $("progress");
  box.hidden = false;
  $("preview").hidden = true;
  $("stop").hidden = ended(run);
  $("bar").hidden = ended(run);
  $("title-progress").textContent = { failed: "This run failed", stopped: "This run was stopped" }[run.state] || "Finding clusters";
  $("progress-told").textContent = run.error || (run.state === "stopped" ? "It has no result. Change the settings and try again." : words(run, progress));
  if (progress.stage === "choosing") $("bar").value = (progress.tried || []).length / (progress.to_try + 1);
  else if (progress.stage === "fitting" && progress.runs > 1) $("bar").value = (progress.run - 1) / progress.runs;
  else $("bar").removeAttribute("value");
  if (!ended(run)) tell.onRun(run);
}

function words(run, progress) {
  if (run.state === "waiting") return "Waiting for another run to finish.";
  if (!progress.stage) return "Starting a process for this run.";
  if (progress.stage === "describing") return "Describing the clusters.";
  if (progress.stage === "choosing") {
    const last = progress.tried[progress.tried.length - 1];
    const so_far = last ? ` The score of ${last[0]} clusters is ${last[1].toFixed(3)}.` : "";
    return `Trying numbers of clusters: ${progress.tried.length} of ${progress.to_try} done.${so_far}`;
  }
  if (!progress.layer) return "Fitting.";
  return `Start ${progress.run} of ${progress.runs}, layer ${progress.layer}.`;
}
