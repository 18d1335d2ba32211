// Points on a canvas: with WebGL, which is fast enough for 100,000 points, or else with the 2-D canvas.

import { colour } from "./page.js";

const MOST_CHOSEN = 16;
const VERTEX = `
attribute vec2 place;
attribute float mark;
uniform vec2 low, span;
uniform float size, chosen[${MOST_CHOSEN}];
uniform vec3 palette[7];
uniform vec3 outlier, plain;
varying vec4 colour;
varying float shape;
void main() {
  vec2 at = (place - low) / span * 2.0 - 1.0;
  gl_Position = vec4(at, 0.0, 1.0);
  gl_PointSize = size;
  float alpha = 0.8;
  if (mark < -1.5) { colour.rgb = plain; shape = 0.0; alpha = 0.55; }
  else if (mark < -0.5) { colour.rgb = outlier; shape = 7.0; }
  else {
    int number = int(mod(mark + 0.5, 7.0));
    vec3 found = palette[0];
    for (int i = 1; i < 7; i++) if (i == number) found = palette[i];
    colour.rgb = found;
    float round = floor((mark + 0.5) / 7.0);
    shape = mod(round, 7.0);
    if (round > 0.5) colour.rgb = mod(round, 2.0) > 0.5 ? mix(found, vec3(1.0), 0.5) : mix(found, vec3(0.0), 0.4);
  }
  float away = 9.0;
  for (int i = 0; i < ${MOST_CHOSEN}; i++) away = min(away, abs(mark - chosen[i]));
  if (chosen[0] > -1.5 && away > 0.25) alpha = 0.07;
  colour.a = alpha;
}`;
const FRAGMENT = `
precision mediump float;
varying vec4 colour;
varying float shape;
void main() {
  vec2 p = gl_PointCoord * 2.0 - 1.0;
  float inside = 1.0;
  float far = length(p);
  if (shape < 0.5) inside = 1.0 - smoothstep(0.8, 1.0, far);
  else if (shape < 1.5) inside = step(abs(p.x), (p.y + 1.0) * 0.5) * step(p.y, 0.85);
  else if (shape < 2.5) inside = step(max(abs(p.x), abs(p.y)), 0.8);
  else if (shape < 3.5) inside = step(abs(p.x) + abs(p.y), 1.0);
  else if (shape < 4.5) inside = step(abs(p.x), (1.0 - p.y) * 0.5) * step(-p.y, 0.85);
  else if (shape < 5.5) inside = step(min(abs(p.x), abs(p.y)), 0.32);
  else inside = step(min(abs(p.x - p.y), abs(p.x + p.y)), 0.42);
  if (inside < 0.02) discard;
  gl_FragColor = vec4(colour.rgb * colour.a * inside, colour.a * inside);
}`;

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);

export class Points {
  constructor(canvas, palette, outlier) {
    this.canvas = canvas;
    this.palette = palette;
    this.outlier = outlier;
    this.count = 0;
    this.gl = canvas.getContext("webgl", { alpha: true, antialias: false, premultipliedAlpha: true });
    if (this.gl) this.#prepare();
    else this.flat = canvas.getContext("2d");
  }

  #prepare() {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    this.where = (name) => gl.getUniformLocation(program, name);
    for (const name of ["place", "mark"]) {
      this[`${name}Buffer`] = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, this[`${name}Buffer`]);
      const at = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, name === "place" ? 2 : 1, gl.FLOAT, false, 0, 0);
    }
    gl.uniform3fv(this.where("palette"), this.palette.flatMap(rgb));
    gl.uniform3fv(this.where("outlier"), rgb(this.outlier));
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  // x and y are stored as offsets from the middle, because graphics cards use single precision.
  places(x, y) {
    this.count = x.length;
    this.x = x;
    this.y = y;
    this.middle = [x.length ? x[0] : 0, y.length ? y[0] : 0];
    if (!this.gl) return;
    const both = new Float32Array(2 * x.length);
    for (let i = 0; i < x.length; i++) {
      both[2 * i] = x[i] - this.middle[0];
      both[2 * i + 1] = y[i] - this.middle[1];
    }
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.placeBuffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, both, this.gl.STATIC_DRAW);
  }

  // marks: the number of a colour for every point; -1 an outlier, -2 not yet in a cluster.
  marks(marks) {
    this.mark = marks;
    if (!this.gl) return;
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.markBuffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, marks, this.gl.DYNAMIC_DRAW);
  }

  get size() {
    return Math.max(3.2, Math.min(9, 9 - 1.5 * Math.log10(Math.max(this.count, 60) / 60)));
  }

  // box: [x0, y0, x1, y1] of the whole canvas in the data's units; chosen: marks that stand out, or none.
  draw(box, chosen, plain) {
    const ratio = devicePixelRatio || 1;
    if (!this.gl) return this.#drawFlat(box, chosen, plain);
    const gl = this.gl;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.count || !this.mark) return undefined;
    gl.uniform2f(this.where("low"), box[0] - this.middle[0], box[1] - this.middle[1]);
    gl.uniform2f(this.where("span"), box[2] - box[0], box[3] - box[1]);
    gl.uniform1f(this.where("size"), this.size * ratio);
    gl.uniform1fv(this.where("chosen"), Array.from({ length: MOST_CHOSEN }, (_, i) => chosen[i] ?? -9));
    gl.uniform3fv(this.where("plain"), rgb(plain));
    gl.drawArrays(gl.POINTS, 0, this.count);
    return undefined;
  }

  #drawFlat(box, chosen, plain) {
    const { flat, canvas, mark } = this;
    flat.clearRect(0, 0, canvas.width, canvas.height);
    if (!this.count || !mark) return;
    const size = this.size * (devicePixelRatio || 1);
    const kx = canvas.width / (box[2] - box[0]);
    const ky = canvas.height / (box[3] - box[1]);
    const groups = new Map();
    for (let i = 0; i < this.count; i++) {
      if (!groups.has(mark[i])) groups.set(mark[i], []);
      groups.get(mark[i]).push(i);
    }
    for (const [one, members] of groups) {
      flat.fillStyle = one < -1.5 ? plain : one < 0 ? this.outlier : colour(one);
      flat.globalAlpha = chosen.length && !chosen.includes(one) ? 0.07 : 0.8;
      for (const i of members) {
        flat.fillRect((this.x[i] - box[0]) * kx - size / 2, (box[3] - this.y[i]) * ky - size / 2, size, size);
      }
    }
    flat.globalAlpha = 1;
  }
}
