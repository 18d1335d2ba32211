// Another run of the same table next to the first one; matching clusters have the same colour.

import * as api from "./api.js";
import { ClusterMap, readLayers, readPoints } from "./map.js";
import { $, count, dot, make, percent, trying } from "./page.js";
import { runTitle } from "./running.js";

export class Comparison {
  constructor(left) {
    this.left = left;
    this.right = null;
    this.partners = null;
  }

  clear() {
    this.partners = null;
    $("right-figure").hidden = true;
    $("left-title").hidden = true;
    $("comparison").hidden = true;
    $("maps").classList.remove("two");
    $("compare").value = "";
  }

  async with(run, other) {
    this.clear();
    if (!run || !other) return;
    const found = await trying(() => Promise.all([
      api.get(`compare?left=${run.id}&right=${other.id}`), api.get(`runs/${other.id}/points`), api.get(`runs/${other.id}/map`),
    ]));
    if (!found) return;
    const [common, points, map] = found;
    $("compare").value = other.id;
    $("right-figure").hidden = false;
    $("left-title").hidden = false;
    $("left-title").textContent = runTitle(run);
    $("right-title").textContent = runTitle(other);
    $("maps").classList.add("two");
    this.right ||= new ClusterMap($("right-map"), { onHover: (row) => pointAt(this.left, row) });
    this.partners = common.colors;
    const layers = readLayers(map);
    const last = layers[layers.length - 1];
    this.right.setPoints(readPoints(points));
    this.right.setLabels(last.labels, (label) => common.colors[label]);
    this.right.setCenters(last.centers, layers.slice(0, -1).map((one) => one.centers));
    this.#tell(common);
  }

  pointAt(row) {
    if (this.partners) pointAt(this.right, row);
  }

  // The matches of the chosen clusters are highlighted on the right.
  choose(labels) {
    if (!this.partners) return;
    this.right.choose(labels.map((label) => (label < 0 ? -1 : this.partners.indexOf(label))).filter((partner, i) => partner >= 0 || labels[i] < 0));
  }

  #tell(common) {
    $("comparison").hidden = false;
    const share = common.rows ? common.same / common.rows : 0;
    const reading = common.agreement >= 0.95 ? "almost identical" : common.agreement >= 0.6 ? "similar" : common.agreement >= 0.2 ? "partly similar" : "different";
    $("comparison-told").textContent =
      `The two runs are ${reading}: ${percent(share)} of the rows are in matching clusters (adjusted Rand index ${common.agreement.toFixed(2)}; 1 is identical, 0 is chance).`;
    $("comparison-table").replaceChildren(
      make("caption", {}, "Number of rows in common: clusters of the left run by row, of the right run by column"),
      make("thead", {}, make("tr", {}, make("td", {}), ...common.colors.map((mark, j) => make("th", { scope: "col", class: "number" }, dot(mark), ` ${j}`)))),
      make("tbody", {}, ...common.counts.map((row, i) => make("tr", {}, make("th", { scope: "row" }, dot(i), ` ${i}`),
        ...row.map((cell, j) => make("td", { class: `number${common.colors[j] === i ? " match" : ""}${cell ? "" : " none"}` }, count(cell)))))),
    );
  }
}

function pointAt(map, row) {
  map.point(row === null || !map.data ? -1 : map.data.rows.indexOf(row));
}
