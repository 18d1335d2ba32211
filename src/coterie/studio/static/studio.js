// The page: loads the state of the studio and connects the parts of the page.

import { get } from "./api.js";
import { $, alertWith, look, say, theme } from "./page.js";
import * as data from "./data.js";
import * as drawing from "./drawing.js";
import * as running from "./running.js";
import * as result from "./result.js";

async function start() {
  theme();
  $("alert").querySelector("button").addEventListener("click", () => alertWith(""));
  let state;
  try {
    state = await get("state");
  } catch (error) {
    alertWith(error.message);
    $("choices").inert = true;
    return;
  }
  Object.assign(look, { palette: state.palette, outlier: state.outlier });
  result.open();
  running.open(state, { onRun: result.follow, onShow: result.show });
  data.open(state, { onTable: running.useTable, onDraw: () => {
    running.makeRoom();
    drawing.show();
  }, onClose: running.forgetTable });
  drawing.open({ onDrawn: data.add });
  if (state.tables.length) data.select(state.tables[state.tables.length - 1].id);
  say("");
  document.documentElement.dataset.ready = "yes";
}

start();
