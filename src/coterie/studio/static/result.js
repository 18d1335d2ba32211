// The result of a run: the map, its layers, the clusters and their rows, and a comparison with another run.

import * as api from "./api.js";
import { Comparison } from "./compare.js";
import { fill } from "./data.js";
import { ClusterMap, readAxes, readLayers, readPoints } from "./map.js";
import { $, called, clusterName, colour, count, dot, make, number, percent, plural, say, trying } from "./page.js";
import { Player } from "./player.js";
import { adopt, canUndo, counts, finishedRuns, runTitle, undo } from "./running.js";

const FIRST_COLUMNS = 12;
let map = null;
let player = null;
let comparison = null;
let run = null; // whose result is shown
let live = null; // whose progress is shown on the map
let chosen = null; // the cluster whose rows are shown
let also = []; // further clusters that are selected
let points = null; // of the run, in its own axes
let layers = [];

export function open() {
  const pick = (label, more) => choose(label, more);
  map = new ClusterMap($("left-map"), { onPick: pick, onHover: (row) => comparison.pointAt(row) });
  player = new Player((layer, seconds, trail) => {
    map.setLabels(layer.labels);
    map.setCenters(layer.centers, trail, seconds);
  });
  comparison = new Comparison(map);
  $("compare").addEventListener("change", (event) => comparison.with(run, finishedRuns().find((one) => one.id === event.target.value)));
  for (const button of $("keep").querySelectorAll("button")) button.addEventListener("click", () => keep(button));
  for (const id of ["axis-x", "axis-y"]) $(id).addEventListener("change", () => showAxes(id));
  $("keep-picture").addEventListener("click", async () => api.save(await map.picture(), `map-run${run.number}.png`));
  $("merge").addEventListener("click", () => edit({ merge: [chosen, ...also] }));
  $("split").addEventListener("click", () => edit({ split: chosen, parts: Number($("parts").value) || undefined }));
  $("number").addEventListener("input", () => { $("number-told").textContent = $("number").value; });
  $("number").addEventListener("change", () => edit({ clusters: Number($("number").value) }));
  $("numbers").addEventListener("toggle", showNumbers);
  $("undo").addEventListener("click", () => trying(() => undo(run)));
  $("more-profile").addEventListener("click", () => showProfile(run.result, Infinity));
}

async function keep(button) {
  const was = button.textContent;
  button.disabled = true;
  button.textContent = "Writing …";
  await trying(() => api.keep(`runs/${run.id}/files/${button.dataset.file}`));
  button.textContent = was;
  button.disabled = false;
}

// During a run: its points in grey, and the current positions of its centres.
export async function follow(next) {
  if (!next.progress.placed) return;
  if (live !== next.id) {
    live = next.id;
    const points = await trying(() => api.get(`runs/${next.id}/points`));
    if (!points || live !== next.id) return;
    frame(true);
    map.setPoints(readPoints(points));
  }
  if (next.progress.centers && map.data) map.setCenters(next.progress.centers, [], 0.1);
}

function frame(underWay) {
  $("result").hidden = false;
  $("result").classList.toggle("live", underWay);
  comparison.clear();
  $("title-result").textContent = underWay ? "The current centres" : "";
  if (underWay) $("result-told").textContent = "";
  $("left-title").hidden = true;
}

export async function show(next) {
  live = null;
  run = next;
  chosen = null;
  player.stop();
  if (!next) {
    $("result").hidden = true;
    return;
  }
  const found = await trying(() => Promise.all([api.get(`runs/${next.id}/points`), api.get(`runs/${next.id}/map`)]));
  if (!found || run !== next) return;
  frame(false);
  called.names = next.result.names;
  points = readPoints(found[0]);
  layers = readLayers(found[1]);
  map.chosen = [];
  also = [];
  offerEdits();
  map.setPoints(points);
  player.load(layers);
  offerAxes(next.result);
  tellResult(next, points);
  showClusters(next.result);
  showProfile(next.result, FIRST_COLUMNS);
  showChoice(next.result.choice);
  showOthers(next);
  $("numbers-part").hidden = !counts(next);
  $("number").value = $("number-told").textContent = next.result.clusters.filter((one) => one.label >= 0).length;
  showNumbers();
  $("rows-part").hidden = true;
}

// What other numbers of clusters are worth: a picture that is drawn when it is looked at.
async function showNumbers() {
  const current = run;
  if (!$("numbers").open) return;
  $("numbers-picture").hidden = true;
  say("Comparing the numbers of clusters");
  const picture = await trying(() => api.picture(`runs/${current.id}/files/granularity.png`));
  if (!picture || run !== current) return;
  $("numbers-picture").src = picture;
  $("numbers-picture").hidden = false;
  say("Numbers of clusters compared");
}

// The axes of the map: those of the run, or any two columns.
function offerAxes(result) {
  const own = points.titles.map((title) => title.replace(/ \(.*/, ""));
  ["axis-x", "axis-y"].forEach((id, i) => {
    $(id).replaceChildren(make("option", { value: "" }, own[i] || ""), ...result.columns.map((name) => make("option", { value: name }, name)));
  });
  $("axes-line").hidden = points.line || result.columns.length < 2;
  $("player").hidden = layers.length < 2;
}

async function showAxes(changed) {
  const current = run;
  const pair = ["axis-x", "axis-y"].map((id) => $(id).value);
  if (!pair[0] !== !pair[1]) { // both axes are columns, or both are those of the run
    const other = $(changed === "axis-x" ? "axis-y" : "axis-x");
    other.value = $(changed).value ? current.result.columns.find((name) => name !== $(changed).value) : "";
    pair.splice(0, 2, ...["axis-x", "axis-y"].map((id) => $(id).value));
  }
  player.stop();
  $("player").hidden = Boolean(pair[0]) || layers.length < 2;
  if (!pair[0]) {
    map.setPoints(points);
    player.load(layers);
    return;
  }
  const found = await trying(() => api.get(`runs/${current.id}/axes?x=${encodeURIComponent(pair[0])}&y=${encodeURIComponent(pair[1])}`));
  if (!found || run !== current) return;
  map.setPoints(readAxes(found, points));
  map.setLabels(layers[layers.length - 1].labels);
  map.setCenters(found.centers);
  say(found.note);
}

// A name for a cluster, which its labels, report and model then have.
async function rename(label, input) {
  const current = run;
  const names = { ...current.result.names, [label]: input.value.trim() };
  const next = await trying(() => api.post(`runs/${current.id}/names`, { names }));
  if (!next || run !== current) return;
  run.result = next.result;
  called.names = next.result.names;
  showClusters(run.result);
  showProfile(run.result, FIRST_COLUMNS);
  map.redraw();
  say(`${clusterName(label)} named`);
}

function tellResult(next, points) {
  const { result } = next;
  const clusters = result.clusters.filter((one) => one.label >= 0);
  $("title-result").textContent = `${plural(clusters.length, "cluster")} by ${result.estimator}`;
  const told = [`${plural(result.rows, "row")} of ${next.table_name}, ${plural(result.used, "column")}${result.scaled ? ", scaled" : ""}.`];
  if (result.left_out) told.push(`${plural(result.left_out, "row")} with missing values left out.`);
  if (result.separation) told.push(`Separation: ${result.separation} (silhouette ${result.silhouette.toFixed(2)}).`);
  if (result.history.length) told.push(`Edited: ${result.history.join(" ")}`);
  if (points.note) told.push(`${points.note[0].toUpperCase()}${points.note.slice(1)}.`);
  told.push(`${result.seconds.toFixed(1)} s.`);
  $("result-told").textContent = told.join(" ");
  const [words, ...reason] = result.verdict.text.split(". ");
  const likely = Object.entries(result.n_clusters_proba).sort(([, a], [, b]) => b - a).map(([k, p]) => `${k} (${percent(p)})`).join(", ");
  const sure = [`${words.replace(/\.$/, "")}.`, ` ${reason.join(". ")}`];
  if (likely) sure.push(` Probability of the number of clusters: ${likely}.`);
  if (result.certainty !== null && clusters.length > 1) sure.push(` Mean certainty of the rows: ${result.certainty.toFixed(2)}.`);
  if (result.outliers) sure.push(` ${plural(result.outliers, "row")} (${percent(result.outliers / result.rows)}) stay outside all clusters.`);
  $("verdict").replaceChildren(make("strong", {}, sure[0]), ...sure.slice(1));
  $("verdict").dataset.verdict = result.verdict.words;
  $("profile-part").hidden = clusters.length < 2;
  $("notes").replaceChildren(...result.notes.map((note) => make("li", {}, note)));
}

function showClusters(result) {
  $("cluster-list").replaceChildren(
    ...result.clusters.map((one) => {
      const bar = make("span", { class: "share" });
      const filled = make("span", {});
      filled.style.width = `${Math.max(1, 100 * one.share)}%`;
      filled.style.backgroundColor = colour(one.label);
      bar.append(filled);
      return make("button", { type: "button", class: "cluster", "data-label": one.label, "aria-pressed": "false", onclick: (event) => choose(one.label, event.shiftKey) },
        dot(one.label), make("strong", {}, clusterName(one.label)),
        make("span", { class: "size" }, `${count(one.rows)} · ${percent(one.share)}`), bar,
        make("span", { class: "words" }, one.words, one.rule ? make("small", {}, `Rule: ${one.rule}.`) : null));
    }),
  );
}

// A new run with changed clusters; the run before stays, and Undo returns to it.
const edit = (step) => trying(async () => adopt(await api.post(`runs/${run.id}/edit`, step)));

function offerEdits() {
  const count = chosen === null ? 0 : 1 + also.length;
  $("merge").disabled = count < 2;
  $("split").disabled = $("parts").disabled = count !== 1 || chosen < 0;
  $("undo").hidden = !canUndo(run);
}

async function choose(label, more = false) {
  if (!run || !run.result) return;
  if (more && chosen !== null && chosen >= 0 && label !== null && label >= 0 && label !== chosen) {
    also = also.includes(label) ? also.filter((one) => one !== label) : [...also, label];
  } else {
    chosen = label === chosen && !also.length ? null : label;
    also = [];
  }
  const current = run;
  const all = chosen === null ? [] : [chosen, ...also];
  map.choose(all);
  comparison.choose(all);
  for (const button of $("cluster-list").children) button.setAttribute("aria-pressed", String(all.includes(Number(button.dataset.label))));
  offerEdits();
  $("rows-part").hidden = chosen === null;
  if (chosen === null) return;
  const wanted = chosen;
  const path = wanted < 0 ? "outliers" : `clusters/${wanted}`;
  const rows = await trying(() => api.get(`runs/${current.id}/${path}`));
  if (!rows || chosen !== wanted || run !== current) return;
  const order = wanted < 0 ? "the farthest first" : "the most typical first";
  const part = rows.cells.length < rows.total ? `${count(rows.cells.length)} of ${plural(rows.total, "row")}` : plural(rows.total, "row");
  const input = make("input", { type: "text", maxLength: 60, value: clusterName(wanted), "aria-label": "Name of this cluster" });
  input.addEventListener("change", () => rename(wanted, input));
  $("rows-title").replaceChildren(dot(wanted), wanted < 0 ? ` ${clusterName(wanted)}` : input, ` ${part}, ${order}`);
  fill($("rows-table"), rows.columns, rows.cells, { head: "row", cells: rows.numbers });
  say(`${clusterName(wanted)}: ${part}`);
}

function showProfile(result, most) {
  const strength = ([, , away]) => Math.max(...away.map(Math.abs));
  const rows = [...result.profile].sort((a, b) => strength(b) - strength(a)).slice(0, most);
  $("more-profile").hidden = rows.length === result.profile.length;
  $("profile-table").replaceChildren(
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "column"),
      ...result.clusters.map((one) => make("th", { scope: "col", class: "number" }, dot(one.label), ` ${clusterName(one.label)}`)))),
    make("tbody", {}, ...rows.map(([name, texts, away]) =>
      make("tr", {}, make("th", { scope: "row" }, name),
        ...texts.map((text, i) => {
          const cell = make("td", { class: "number", title: `${away[i] >= 0 ? "+" : ""}${away[i].toFixed(2)} standard deviations` }, text);
          const depth = Math.min(1, Math.abs(away[i]) / 2.5) * 0.6;
          cell.style.backgroundColor = away[i] < 0 ? `rgba(0,114,178,${depth})` : `rgba(213,94,0,${depth})`;
          return cell;
        })))),
  );
}

function showChoice(choice) {
  $("choice-part").hidden = !choice;
  if (!choice) return;
  const edge = choice.at_edge ? " It is the largest number that was tried: a larger one may be better." : "";
  const scores = choice.candidates.map((one) => one.score).filter((score) => score !== null);
  const [low, high] = [Math.min(0, ...scores), Math.max(...scores)];
  $("choice-told").textContent = `The criterion ${choice.criterion} chose ${choice.n_clusters}.${edge}`;
  $("choice-table").replaceChildren(make("tbody", {}, ...choice.candidates.map(({ n_clusters: k, score }) => {
    const bar = make("span", { class: "bar" });
    bar.style.width = `${score === null ? 0 : (100 * (score - low)) / (high - low || 1)}%`;
    return make("tr", { class: k === choice.n_clusters ? "best" : "" }, make("th", { scope: "row", class: "number" }, String(k)),
      make("td", { class: "wide" }, bar), make("td", { class: "number" }, score === null ? "–" : number(score)));
  })));
}

function showOthers(next) {
  const others = finishedRuns().filter((one) => one.table === next.table && one.id !== next.id);
  $("compare-line").querySelector("label").hidden = !others.length;
  $("compare").replaceChildren(make("option", { value: "" }, "nothing"),
    ...others.map((one) => make("option", { value: one.id }, runTitle(one))));
}
