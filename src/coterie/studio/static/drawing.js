// Points drawn by hand, with a pointer or with the keyboard.

import { $, alertWith, plural } from "./page.js";

const EACH = 5; // points a stroke's step puts
const strokes = []; // lists of [x, y], in the canvas' own pixels from the lower left
let cross = null;
let tell = {};

export function open(listeners) {
  tell = listeners;
  const canvas = $("canvas");
  let last = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    cross = null;
    strokes.push([]);
    last = [event.offsetX, event.offsetY];
    spray(...last);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last || Math.hypot(event.offsetX - last[0], event.offsetY - last[1]) < 6) return;
    last = [event.offsetX, event.offsetY];
    spray(...last);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { last = null; });
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("focus", () => {
    if (canvas.matches(":focus-visible")) cross ||= [canvas.clientWidth / 2, canvas.clientHeight / 2];
    draw();
  });
  canvas.addEventListener("blur", () => {
    cross = null;
    draw();
  });
  $("clear-drawing").addEventListener("click", () => {
    strokes.length = 0;
    draw();
  });
  $("use-drawing").addEventListener("click", () => {
    const points = strokes.flat();
    if (points.length < 3) alertWith("Draw at least three points first.");
    else tell.onDrawn(points);
  });
  new ResizeObserver(draw).observe(canvas);
  addEventListener("themechange", draw);
}

export function show() {
  $("drawing").hidden = false;
  $("drawing").scrollIntoView({ block: "nearest" });
  $("canvas").focus();
  draw();
}

function spray(x, y) {
  const width = Number($("spray").value);
  const { clientWidth, clientHeight } = $("canvas");
  for (let i = 0; i < (width ? EACH : 1); i++) {
    const px = x + normal() * width * 0.5;
    const py = y + normal() * width * 0.5;
    if (px < 0 || py < 0 || px > clientWidth || py > clientHeight) continue;
    strokes[strokes.length - 1].push([Math.round(px * 10) / 10, Math.round((clientHeight - py) * 10) / 10]);
  }
  draw();
}

function normal() {
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}

function onKey(event) {
  const canvas = $("canvas");
  cross ||= [canvas.clientWidth / 2, canvas.clientHeight / 2];
  const far = event.shiftKey ? 40 : 12;
  const ways = { ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, -far], ArrowDown: [0, far] };
  if (ways[event.key]) {
    cross = [
      Math.min(canvas.clientWidth, Math.max(0, cross[0] + ways[event.key][0])),
      Math.min(canvas.clientHeight, Math.max(0, cross[1] + ways[event.key][1])),
    ];
    draw();
  } else if (event.key === " " || event.key === "Enter") {
    strokes.push([]);
    spray(...cross);
  } else if (event.key === "Backspace") {
    strokes.pop();
    draw();
  } else {
    return;
  }
  event.preventDefault();
}

function draw() {
  const canvas = $("canvas");
  const ratio = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!width) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const style = getComputedStyle(canvas);
  pen.fillStyle = style.getPropertyValue("--link");
  const points = strokes.flat();
  for (const [x, y] of points) {
    pen.beginPath();
    pen.arc(x, height - y, 3.5, 0, 2 * Math.PI);
    pen.fill();
  }
  if (cross) {
    pen.strokeStyle = style.getPropertyValue("--ink");
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(cross[0] - 12, cross[1]);
    pen.lineTo(cross[0] + 12, cross[1]);
    pen.moveTo(cross[0], cross[1] - 12);
    pen.lineTo(cross[0], cross[1] + 12);
    pen.stroke();
  }
  $("drawn-told").textContent = points.length ? plural(points.length, "point") : "no points yet";
}
