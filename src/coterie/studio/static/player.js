// Plays the layers of a run: a button, a slider, and a curve of the objective.

import { $, calm, number } from "./page.js";

const PAUSE = 750;
const SVG = "http://www.w3.org/2000/svg";

export class Player {
  constructor(show) {
    this.show = show;
    this.layers = [];
    this.timer = null;
    $("play").addEventListener("click", () => (this.timer ? this.stop() : this.play()));
    $("layer").addEventListener("input", () => {
      this.stop();
      this.go(Number($("layer").value), 0.25);
    });
  }

  load(layers) {
    this.stop();
    this.layers = layers;
    $("player").hidden = layers.length < 2;
    $("layer").max = layers.length - 1;
    this.go(layers.length - 1, 0);
  }

  go(index, seconds) {
    this.at = index;
    $("layer").value = index;
    const one = this.layers[index];
    const told = `layer ${one.layer} of ${this.layers[this.layers.length - 1].layer}`;
    $("layer-told").textContent = told;
    $("layer").setAttribute("aria-valuetext", told);
    this.#fall();
    this.show(one, seconds, this.layers.slice(0, index).map((layer) => layer.centers));
  }

  play() {
    $("play").textContent = "Pause";
    if (this.at >= this.layers.length - 1) this.go(0, 0);
    const step = () => {
      this.go(this.at + 1, 0.5);
      if (this.at >= this.layers.length - 1) this.stop();
      else this.timer = setTimeout(step, PAUSE);
    };
    this.timer = setTimeout(step, calm.matches ? PAUSE : PAUSE / 2);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    $("play").textContent = "Play the layers";
  }

  #fall() {
    const costs = this.layers.map((one) => one.cost);
    const [low, high] = [Math.min(...costs), Math.max(...costs)];
    const place = (i) => [4 + (112 * i) / Math.max(1, costs.length - 1), 30 - (26 * (costs[i] - low)) / (high - low || 1)];
    const line = document.createElementNS(SVG, "polyline");
    line.setAttribute("points", costs.map((_, i) => place(i).join(",")).join(" "));
    const dot = document.createElementNS(SVG, "circle");
    const [x, y] = place(this.at);
    for (const [name, value] of [["cx", x], ["cy", y], ["r", 3.5]]) dot.setAttribute(name, value);
    const told = document.createElementNS(SVG, "title");
    told.textContent = `Mean squared distance to the nearest centre: ${number(costs[this.at])}`;
    $("falling").replaceChildren(told, line, dot);
  }
}
