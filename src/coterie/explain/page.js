"use strict";
(function () {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const themes = read("themes");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const places = Array.from(document.querySelectorAll(".figure > div[data-figure]"));
  const config = { responsive: true, displayModeBar: false };
  const touch = window.matchMedia("(pointer: coarse)").matches; // a finger scrolls the page; a mouse zooms the figure
  let drawn = [];

  function theme(name) {
    return themes[name || (dark.matches ? "dark" : "light")];
  }

  // Without WebGL the same points are drawn as shapes: slower, but there.
  const webgl = (function () {
    try {
      const canvas = document.createElement("canvas");
      return Boolean(canvas.getContext("webgl") || canvas.getContext("experimental-webgl"));
    } catch (error) {
      return false;
    }
  })();

  function plain(trace) {
    return trace.type === "scattergl" && !webgl ? Object.assign({}, trace, { type: "scatter" }) : trace;
  }

  async function draw(place) {
    const figure = read(place.dataset.figure);
    const height = Number(place.dataset.height) || figure.layout.height || 320;
    const layout = Object.assign({}, figure.layout, { template: theme(), height: height, autosize: true });
    if (touch) layout.dragmode = false;
    place.textContent = "";
    await Plotly.newPlot(place, figure.data.map(plain), layout, config);
    if (figure.frames && figure.frames.length) await Plotly.addFrames(place, figure.frames);
    drawn.push(place);
    place.parentElement.querySelectorAll("button").forEach((save) => {
      save.hidden = false;
      const wanted = { format: save.dataset.kind, scale: save.dataset.kind === "png" ? 2 : 1, filename: save.dataset.name };
      save.addEventListener("click", () => Plotly.downloadImage(place, wanted));
    });
  }

  async function recolour(name) {
    await Promise.all(drawn.map((place) => Plotly.relayout(place, { template: theme(name) })));
  }

  async function start() {
    for (const place of places) {
      try {
        await draw(place);
      } catch (error) {
        place.textContent = "This figure could not be drawn here (" + error.message + ").";
      }
      await new Promise((resolve) => setTimeout(resolve));
    }
    layers();
    dark.addEventListener("change", () => recolour());
    window.addEventListener("beforeprint", () => {
      document.querySelectorAll("details").forEach((card) => (card.open = true));
      recolour("light");
    });
    window.addEventListener("afterprint", () => recolour());
    document.documentElement.dataset.ready = "yes";
  }

  function layers() {
    const slider = document.getElementById("layer");
    if (!slider) return;
    const names = read("layer-names");
    const panels = drawn.filter((place) => place.dataset.group === "layers");
    const button = document.getElementById("play");
    const told = document.getElementById("layer-name");
    const now = { mode: "immediate", frame: { duration: 0, redraw: true }, transition: { duration: 0 } };
    let timer = null;

    async function show(number) {
      slider.value = number;
      told.textContent = names[number];
      slider.setAttribute("aria-valuetext", names[number]);
      await Promise.all(panels.map((place) => Plotly.animate(place, [names[number]], now)));
    }

    function stop() {
      clearTimeout(timer);
      timer = null;
      button.textContent = "Play";
    }

    function step() {
      const next = Number(slider.value) + 1;
      if (next >= names.length) return stop();
      show(next).then(() => {
        if (timer !== null) timer = setTimeout(step, 700);
      });
    }

    slider.addEventListener("input", () => {
      stop();
      show(Number(slider.value));
    });
    button.addEventListener("click", () => {
      if (timer !== null) return stop();
      button.textContent = "Pause";
      const fresh = Number(slider.value) >= names.length - 1 ? show(0) : Promise.resolve();
      timer = setTimeout(() => fresh.then(step), 100);
    });
    show(names.length - 1);
  }

  start();
})();
