// The map: points, centres and axes. It can be moved and zoomed, and points can be selected.

import { unpack } from "./api.js";
import { calm, clusterName, colour, count, look, make, number } from "./page.js";
import { Points } from "./points.js";

const EDGE = { left: 52, right: 12, top: 12, bottom: 40 };
const NOBODY = 255;

export function readPoints(document) {
  return {
    x: unpack(document.x, Float32Array), y: unpack(document.y, Float32Array), rows: unpack(document.rows, Uint32Array),
    titles: document.titles, logs: document.logs || [], line: document.line, note: document.note, frame: document.frame,
    hover: (document.hover || []).map((one) => ({
      ...one, values: one.values && unpack(one.values, Float32Array), codes: one.codes && unpack(one.codes, Uint8Array),
    })),
  };
}

// The same points in other columns.
export function readAxes(document, points) {
  return { ...points, ...document, x: unpack(document.x, Float32Array), y: unpack(document.y, Float32Array) };
}

export function readLayers(document) {
  return document.layers.map((one) => ({ ...one, labels: unpack(one.labels, Uint8Array) }));
}

export class ClusterMap {
  constructor(root, { onPick = () => {}, onHover = () => {} } = {}) {
    this.root = root;
    this.onPick = onPick;
    this.onHover = onHover;
    this.under = make("canvas", { class: "under", "aria-hidden": "true" });
    this.base = make("canvas", { class: "points", "aria-hidden": "true" });
    this.over = make("canvas", { class: "over", tabIndex: 0, role: "img" });
    this.over.setAttribute("aria-label", "Map of the points. Arrows move it, plus and minus zoom, 0 shows all.");
    this.tip = make("div", { class: "tip", hidden: true });
    root.replaceChildren(this.under, this.base, this.over, this.tip);
    this.pen = this.over.getContext("2d");
    this.points = null;
    this.data = null;
    this.labels = null;
    this.colours = (label) => label;
    this.centers = [];
    this.trail = [];
    this.chosen = []; // labels that stand out; all if there are none
    this.hovered = -1;
    new ResizeObserver(() => this.redraw()).observe(root);
    addEventListener("themechange", () => this.redraw());
    this.#listen();
  }

  setPoints(data) {
    this.points ||= new Points(this.base, look.palette, look.outlier);
    this.data = data;
    this.points.places(data.x, data.y);
    this.labels = null;
    this.centers = [];
    this.trail = [];
    this.hovered = -1;
    this.points.marks(new Float32Array(data.x.length).fill(-2));
    this.reset();
  }

  setLabels(labels, colours = this.colours) {
    this.labels = labels;
    this.colours = colours;
    const marks = new Float32Array(labels.length);
    for (let i = 0; i < labels.length; i++) marks[i] = labels[i] === NOBODY ? -1 : colours(labels[i]);
    this.points.marks(marks);
    this.redraw();
  }

  // Move the centres to new positions, smoothly unless the user prefers reduced motion.
  setCenters(centers, trail = [], seconds = 0) {
    const from = this.centers;
    this.trail = trail;
    cancelAnimationFrame(this.moving);
    if (!seconds || calm.matches || from.length !== centers.length) {
      this.centers = centers;
      this.redraw();
      return;
    }
    const begin = performance.now();
    const step = (now) => {
      const t = Math.min(1, (now - begin) / (1000 * seconds));
      const eased = t * t * (3 - 2 * t);
      this.centers = centers.map((end, k) => end && from[k] && end.map((value, i) => from[k][i] + (value - from[k][i]) * eased));
      this.#draw();
      if (t < 1) this.moving = requestAnimationFrame(step);
    };
    this.moving = requestAnimationFrame(step);
  }

  choose(labels) {
    this.chosen = labels;
    this.redraw();
  }

  point(index) {
    this.hovered = index;
    this.redraw();
  }

  reset() {
    const [[x0, y0], [x1, y1]] = this.data.line ? [[this.data.frame[0][0], 0], [this.data.frame[1][0], 1]] : this.data.frame;
    this.box = [x0, y0, x1, y1];
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.#draw();
    });
  }

  get #inner() {
    const { clientWidth: width, clientHeight: height } = this.root;
    const left = this.data && this.data.line ? EDGE.right : EDGE.left;
    return { x: left, y: EDGE.top, width: width - left - EDGE.right, height: height - EDGE.top - EDGE.bottom };
  }

  #toScreen(x, y) {
    const inner = this.#inner;
    const [x0, y0, x1, y1] = this.box;
    return [inner.x + ((x - x0) / (x1 - x0)) * inner.width, inner.y + ((y1 - y) / (y1 - y0)) * inner.height];
  }

  #draw() {
    if (!this.data || !this.root.clientWidth) return;
    const ratio = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.root;
    const inner = this.#inner;
    for (const [canvas, w, h] of [[this.base, inner.width, inner.height], [this.under, width, height], [this.over, width, height]]) {
      if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
        canvas.width = Math.round(w * ratio);
        canvas.height = Math.round(h * ratio);
      }
    }
    this.base.style.left = `${inner.x}px`;
    this.base.style.top = `${inner.y}px`;
    this.base.style.width = `${inner.width}px`;
    this.base.style.height = `${inner.height}px`;
    const style = getComputedStyle(this.root);
    const inks = Object.fromEntries(["ink", "faint", "line", "paper"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    const chosen = this.chosen.map((label) => (label < 0 ? -1 : this.colours(label)));
    this.points.draw(this.box, chosen, inks.faint);
    const pen = this.pen;
    const grid = this.under.getContext("2d");
    for (const one of [grid, pen]) {
      one.setTransform(ratio, 0, 0, ratio, 0, 0);
      one.clearRect(0, 0, width, height);
    }
    this.#axes(grid, inner, inks);
    pen.save();
    pen.beginPath();
    pen.rect(inner.x - 2, inner.y - 2, inner.width + 4, inner.height + 4);
    pen.clip();
    this.#centers(pen, inks);
    pen.restore();
    this.#pointed(pen, inks);
  }

  #axes(pen, inner, inks) {
    const [x0, y0, x1, y1] = this.box;
    pen.font = "12px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.strokeStyle = inks.line;
    pen.fillStyle = inks.faint;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of ticks(x0, x1, Math.max(3, inner.width / 100))) {
      const [x] = this.#toScreen(value, y0);
      line(pen, x, inner.y, x, inner.y + inner.height);
      pen.fillText(label(value, x1 - x0, this.data.logs[0]), x, inner.y + inner.height + 5);
    }
    if (!this.data.line) {
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      for (const value of ticks(y0, y1, Math.max(3, inner.height / 60))) {
        const [, y] = this.#toScreen(x0, value);
        line(pen, inner.x, y, inner.x + inner.width, y);
        pen.fillText(label(value, y1 - y0, this.data.logs[1]), inner.x - 6, y);
      }
      pen.save();
      pen.translate(11, inner.y + inner.height / 2);
      pen.rotate(-Math.PI / 2);
      pen.textAlign = "center";
      pen.fillText(this.data.titles[1], 0, 0, inner.height);
      pen.restore();
    }
    pen.textAlign = "center";
    pen.textBaseline = "bottom";
    pen.fillText(this.data.titles[0], inner.x + inner.width / 2, inner.y + inner.height + EDGE.bottom - 2, inner.width);
  }

  #centers(pen, inks) {
    pen.lineWidth = 2;
    pen.strokeStyle = inks.faint;
    this.centers.forEach((center, k) => {
      const way = [...this.trail.map((layer) => layer[k]).filter(Boolean), center];
      if (way.length < 2) return;
      pen.beginPath();
      way.forEach(([x, y], i) => (i ? pen.lineTo(...this.#toScreen(x, y)) : pen.moveTo(...this.#toScreen(x, y))));
      pen.stroke();
    });
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const radius = this.centers.length > 20 ? 8 : 10.5;
    pen.font = `600 ${radius + 1.5}px system-ui, sans-serif`;
    this.centers.forEach((center, k) => {
      if (!center) return; // a number that is not used any more
      const [sx, sy] = this.#toScreen(...center);
      pen.globalAlpha = !this.chosen.length || this.chosen.includes(k) ? 1 : 0.35;
      pen.beginPath();
      pen.arc(sx, sy, radius, 0, 2 * Math.PI);
      pen.fillStyle = "#ffffff";
      pen.fill();
      pen.lineWidth = 3;
      pen.strokeStyle = this.labels ? colour(this.colours(k)) : inks.ink;
      pen.stroke();
      pen.fillStyle = "#1d2430";
      pen.fillText(String(k), sx, sy + 0.5);
      pen.globalAlpha = 1;
    });
  }

  #pointed(pen, inks) {
    const i = this.hovered;
    if (i < 0 || i >= this.data.x.length) {
      this.tip.hidden = true;
      return;
    }
    const [x, y] = this.#toScreen(this.data.x[i], this.data.y[i]);
    pen.beginPath();
    pen.arc(x, y, 8, 0, 2 * Math.PI);
    pen.lineWidth = 2;
    pen.strokeStyle = inks.ink;
    pen.stroke();
    const found = this.labels ? (this.labels[i] === NOBODY ? "outlier" : clusterName(this.labels[i])) : "no cluster yet";
    const say = (one) => (one.dates ? new Date(one.values[i] * 864e5).toISOString().slice(0, 10) : number(one.values[i]));
    const values = this.data.hover.map((one) => [one.name, one.values ? say(one) : one.levels[one.codes[i]]]);
    this.tip.replaceChildren(make("strong", {}, `row ${count(this.data.rows[i])}: ${found}`),
      ...values.map(([name, value]) => make("span", {}, `${name}: ${value}`)));
    this.tip.hidden = false;
    const width = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(4, Math.min(this.root.clientWidth - width - 4, x - width / 2))}px`;
    const tall = this.tip.offsetHeight;
    this.tip.style.top = `${y < tall + 20 ? y + 16 : y - tall - 12}px`;
  }

  // The map as one picture. WebGL keeps what it drew only until the browser shows it, so all is drawn again first.
  picture() {
    this.#draw();
    const made = make("canvas", { width: this.over.width, height: this.over.height });
    const pen = made.getContext("2d");
    const ratio = devicePixelRatio || 1;
    pen.fillStyle = getComputedStyle(this.root).getPropertyValue("--paper").trim() || "#ffffff";
    pen.fillRect(0, 0, made.width, made.height);
    pen.drawImage(this.under, 0, 0);
    pen.drawImage(this.base, Math.round(this.#inner.x * ratio), Math.round(this.#inner.y * ratio));
    pen.drawImage(this.over, 0, 0);
    return new Promise((resolve) => made.toBlob(resolve, "image/png"));
  }

  #nearest(sx, sy, reach = 14) {
    let best = reach * reach;
    let found = -1;
    const inner = this.#inner;
    const [x0, y0, x1, y1] = this.box;
    const kx = inner.width / (x1 - x0);
    const ky = inner.height / (y1 - y0);
    const { x, y } = this.data;
    for (let i = 0; i < x.length; i++) {
      const dx = inner.x + (x[i] - x0) * kx - sx;
      const dy = inner.y + (y1 - y[i]) * ky - sy;
      const far = dx * dx + dy * dy;
      if (far < best) [best, found] = [far, i];
    }
    return found;
  }

  zoom(factor, sx, sy) {
    const inner = this.#inner;
    const [x0, y0, x1, y1] = this.box;
    const u = sx === undefined ? 0.5 : (sx - inner.x) / inner.width;
    const v = sy === undefined ? 0.5 : 1 - (sy - inner.y) / inner.height;
    const [cx, cy] = [x0 + u * (x1 - x0), y0 + v * (y1 - y0)];
    const up = this.data.line ? 1 : factor;
    this.box = [cx + (x0 - cx) * factor, cy + (y0 - cy) * up, cx + (x1 - cx) * factor, cy + (y1 - cy) * up];
    this.redraw();
  }

  move(dx, dy) {
    const inner = this.#inner;
    const [x0, y0, x1, y1] = this.box;
    const mx = (-dx / inner.width) * (x1 - x0);
    const my = this.data.line ? 0 : (dy / inner.height) * (y1 - y0);
    this.box = [x0 + mx, y0 + my, x1 + mx, y1 + my];
    this.redraw();
  }

  #listen() {
    const over = this.over;
    let held = null;
    over.addEventListener("pointerdown", (event) => {
      if (!this.data || event.button) return;
      held = { x: event.offsetX, y: event.offsetY, moved: false, touch: event.pointerType === "touch" };
      if (!held.touch) over.setPointerCapture(event.pointerId);
    });
    over.addEventListener("pointermove", (event) => {
      if (!this.data) return;
      if (held && !held.touch) {
        const [dx, dy] = [event.offsetX - held.x, event.offsetY - held.y];
        if (held.moved || Math.hypot(dx, dy) > 4) {
          held = { ...held, x: event.offsetX, y: event.offsetY, moved: true };
          this.move(dx, dy);
        }
        return;
      }
      const found = this.#nearest(event.offsetX, event.offsetY);
      if (found !== this.hovered) {
        this.point(found);
        this.onHover(found < 0 ? null : this.data.rows[found]);
      }
    });
    over.addEventListener("pointerup", (event) => {
      const clicked = held && !held.moved;
      held = null;
      if (!clicked || !this.labels) return;
      const found = this.#nearest(event.offsetX, event.offsetY);
      this.onPick(found < 0 ? null : this.labels[found] === NOBODY ? -1 : this.labels[found], event.shiftKey);
    });
    over.addEventListener("pointercancel", () => { held = null; });
    over.addEventListener("pointerleave", () => {
      this.point(-1);
      this.onHover(null);
    });
    over.addEventListener("wheel", (event) => {
      if (!this.data || (!event.ctrlKey && document.activeElement !== over)) return; // the page scrolls until the map is clicked
      event.preventDefault();
      this.zoom(Math.exp(Math.sign(event.deltaY) * 0.15), event.offsetX, event.offsetY);
    }, { passive: false });
    over.addEventListener("dblclick", () => this.data && this.reset());
    over.addEventListener("keydown", (event) => {
      const keys = {
        ArrowLeft: () => this.move(40, 0), ArrowRight: () => this.move(-40, 0),
        ArrowUp: () => this.move(0, 40), ArrowDown: () => this.move(0, -40),
        "+": () => this.zoom(0.8), "=": () => this.zoom(0.8), "-": () => this.zoom(1.25), 0: () => this.reset(),
        Escape: () => this.onPick(null),
      };
      if (!this.data || !keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}

function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(Math.round(x0) + 0.5, Math.round(y0) + 0.5);
  pen.lineTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
  pen.stroke();
}

function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.75);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high && found.length < 50; i++) found.push(i * step + 0); // no minus before a zero
  return found;
}

function label(value, span, log) {
  if (log) return number(10 ** value);
  const digits = Math.max(0, 1 - Math.floor(Math.log10(span)));
  if (Math.abs(value) >= 1e6 || digits > 6) return value.toPrecision(3);
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}
