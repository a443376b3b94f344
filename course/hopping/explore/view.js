// Paints the scenes of hopping.explore and reports where points are moved to. It computes nothing
// about attention: every number it shows came from the kernel, and so from the learner's functions.
// A plain ES module: no build step, no WebGL, nothing fetched.

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const FONT = "14px 'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif";
// Nodes a side that a grid is interpolated to, for colours and contours: few while it is coarse.
const fineFor = (side) => clamp(2 * side - 1, 49, 97);
const LINE = 16; // height of a line of text
const SOLID = 37; // nodes a side of a surface
const DASHES = { "-": [], "--": [7, 4], ":": [2, 4], "-.": [8, 4, 2, 4] };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const minus = (text) => text.replace("-", "−");

function element(tag, className, parent) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (parent) parent.append(made);
  return made;
}

// ------------------------------------------------------------------ numbers and axes

function short(number) {
  if (number === null || !Number.isFinite(number)) return "?";
  const size = Math.abs(number);
  if (number !== 0 && (size < 0.01 || size >= 1e4)) {
    return minus(number.toExponential(1)).replace("e+", "e");
  }
  const text = number.toFixed(size >= 10 ? 1 : 2);
  return minus(Number(text) === 0 ? text.replace("-", "") : text);
}

function scaleOf(axis, start, end) {
  const inner = axis.log ? Math.log : (value) => value;
  const outer = axis.log ? Math.exp : (value) => value;
  const [low, high] = [inner(axis.low), inner(axis.high)];
  const to = (value) => start + ((inner(value) - low) / (high - low)) * (end - start);
  to.back = (pixel) => outer(low + ((pixel - start) / (end - start)) * (high - low));
  return to;
}

function powerText(base, power) {
  if (base === 2) return power < 0 ? `1/${2 ** -power}` : `${2 ** power}`;
  if (power === 0 || power === 1) return `${10 ** power}`;
  return "10" + String(power).replace(/./g, (sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] ?? "⁻");
}

function ticksOf(axis, length, room) {
  if (axis.names.length) {
    return axis.names.map((text, at) => ({ at, text }));
  }
  const most = Math.max(2, Math.floor(length / room));
  if (axis.log) {
    // Powers of two as far as a reader knows them, and beyond that of ten.
    const base = axis.low < 2 ** -10.5 || axis.high > 2 ** 10.5 ? 10 : 2;
    const whole = (value, round, slack) => round(Math.log(value) / Math.log(base) + slack);
    const [first, last] = [whole(axis.low, Math.ceil, -1e-9), whole(axis.high, Math.floor, 1e-9)];
    const step = Math.max(1, Math.ceil((last - first) / most));
    const ticks = [];
    for (let power = first; power <= last; power += step) {
      ticks.push({ at: base ** power, text: powerText(base, power) });
    }
    return ticks;
  }
  const raw = (axis.high - axis.low) / most;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const steps = [0.5, 1, 2, 5, 10].map((factor) => factor * unit);
  let which = steps.findIndex((step) => step >= raw * 0.999);
  // A single number tells no scale: then rather one more than there is room for.
  const count = (step) => Math.floor(axis.high / step + 1e-9) - Math.ceil(axis.low / step - 1e-9) + 1;
  if (which > 0 && count(steps[which]) < 2) which -= 1;
  const step = steps[which];
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let k = Math.ceil(axis.low / step - 1e-9); k * step <= axis.high + 1e-9 * step; k++) {
    ticks.push({ at: k * step, text: minus((k * step || 0).toFixed(digits)) });
  }
  return ticks;
}

// ------------------------------------------------------------------ grids

function floats(view) {
  // Binary messages arrive as a DataView at any offset; saved state as an ArrayBuffer.
  if (view instanceof ArrayBuffer) return new Float32Array(view);
  const copy = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
  return new Float32Array(copy);
}

function bytes(view) {
  if (view instanceof ArrayBuffer) return new Uint8Array(view);
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

// Catmull-Rom interpolation of a square grid to `fine` nodes a side, rows first, then columns.
function interpolate(values, side, fine) {
  if (fine === side) return values;
  const weights = [];
  for (let k = 0; k < fine; k++) {
    const x = (k * (side - 1)) / (fine - 1);
    const i = Math.min(Math.floor(x), side - 2);
    const t = x - i;
    weights.push([i, t, [
      ((2 - t) * t - 1) * t / 2, ((3 * t - 5) * t * t + 2) / 2,
      ((4 - 3 * t) * t + 1) * t / 2, (t - 1) * t * t / 2,
    ]]);
  }
  const along = (get, [i, t, w]) => {
    const [b, c] = [get(i), get(i + 1)];
    if (t === 0) return b;
    const a = i > 0 ? get(i - 1) : 2 * b - c;
    const d = i + 2 < side ? get(i + 2) : 2 * c - b;
    return w[0] * a + w[1] * b + w[2] * c + w[3] * d;
  };
  const rows = new Float32Array(side * fine);
  for (let j = 0; j < side; j++) {
    for (let k = 0; k < fine; k++) {
      rows[j * fine + k] = along((i) => values[j * side + i], weights[k]);
    }
  }
  const result = new Float32Array(fine * fine);
  for (let j = 0; j < fine; j++) {
    for (let k = 0; k < fine; k++) {
      result[j * fine + k] = along((i) => rows[i * fine + k], weights[j]);
    }
  }
  return result;
}

// Place of a value in the colour table: the square root spreads colours over a bowl's bottom.
function shade(grid, value) {
  const part = clamp((value - grid.low) / (grid.high - grid.low || 1), 0, 1);
  return Math.round(255 * (grid.signed ? part : Math.sqrt(part)));
}

function raster(fine, size, grid, colors) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  for (let j = 0; j < size; j++) {
    for (let k = 0; k < size; k++) {
      const value = fine[(size - 1 - j) * size + k];
      if (Number.isNaN(value)) continue; // stays transparent: no value, no colour
      const from = 3 * shade(grid, value);
      const at = 4 * (j * size + k);
      for (let c = 0; c < 3; c++) image.data[at + c] = colors[from + c];
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// Marching squares on the fine grid, joined to lines; coordinates from 0 to 1, y upwards.
function contours(fine, size, level) {
  const joints = new Map(); // edge of the grid -> edges its contour goes on to
  const points = new Map();
  const edge = (j, k, down) => 2 * (j * size + k) + down;
  const cross = (key, j, k, other, dj, dk) => {
    if (points.has(key)) return;
    const value = fine[j * size + k];
    const t = (level - value) / (other - value);
    points.set(key, [(k + t * dk) / (size - 1), (j + t * dj) / (size - 1)]);
  };
  const join = (a, b) => {
    for (const [from, to] of [[a, b], [b, a]]) {
      if (!joints.has(from)) joints.set(from, []);
      joints.get(from).push(to);
    }
  };
  for (let j = 0; j < size - 1; j++) {
    for (let k = 0; k < size - 1; k++) {
      const a = fine[j * size + k], b = fine[j * size + k + 1];
      const c = fine[(j + 1) * size + k], d = fine[(j + 1) * size + k + 1];
      const above = (a > level) + (b > level) + (c > level) + (d > level);
      if (above === 0 || above === 4 || Number.isNaN(a + b + c + d)) continue;
      const crossed = [];
      const look = (key, from, to, ...where) => {
        if (from > level === to > level) return;
        cross(key, ...where);
        crossed.push(key);
      };
      look(edge(j, k, 0), a, b, j, k, b, 0, 1);
      look(edge(j, k, 1), a, c, j, k, c, 1, 0);
      look(edge(j, k + 1, 1), b, d, j, k + 1, d, 1, 0);
      look(edge(j + 1, k, 0), c, d, j + 1, k, d, 0, 1);
      join(crossed[0], crossed[1]);
      if (crossed.length === 4) join(crossed[2], crossed[3]);
    }
  }
  const lines = [];
  const walk = (start) => {
    const line = [];
    let at = start;
    while (at !== undefined) {
      line.push(points.get(at));
      const next = joints.get(at).pop();
      if (next === undefined) break;
      const back = joints.get(next);
      back.splice(back.indexOf(at), 1);
      at = next;
    }
    if (line.length > 1) lines.push(line);
  };
  for (const [key, ends] of joints) if (ends.length === 1) walk(key); // open lines first
  for (const [key, ends] of joints) if (ends.length) walk(key);
  return lines;
}

// ------------------------------------------------------------------ marks on a canvas

function marker(context, look, x, y, size, hollow) {
  const r = size * 0.72;
  context.beginPath();
  if (look.marker === "o") {
    context.arc(x, y, r, 0, 2 * Math.PI);
  } else {
    const corners = { D: 4, s: 4, "^": 3, "*": 10 }[look.marker];
    const turn = look.marker === "s" ? Math.PI / 4 : 0;
    for (let k = 0; k < corners; k++) {
      const angle = turn - Math.PI / 2 + (2 * Math.PI * k) / corners;
      const reach = look.marker === "*" && k % 2 ? r * 0.42 : r * 1.1;
      context.lineTo(x + reach * Math.cos(angle), y + reach * Math.sin(angle));
    }
    context.closePath();
  }
  context.setLineDash([]);
  context.lineJoin = "round";
  context.lineWidth = hollow ? 2.5 : 4;
  context.strokeStyle = hollow ? look.color : "#fff";
  context.fillStyle = hollow ? "#fff" : look.color;
  if (hollow) context.fill();
  context.stroke();
  if (!hollow) context.fill();
}

function haloText(context, text, x, y) {
  context.setLineDash([]);
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = "rgba(255,255,255,.85)";
  context.strokeText(text, x, y);
  context.fillText(text, x, y);
}

function stroke(context, look, role, points) {
  context.beginPath();
  let pen = false;
  for (const point of points) {
    if (!point || !Number.isFinite(point[0]) || !Number.isFinite(point[1])) {
      pen = false;
    } else if (pen) {
      context.lineTo(point[0], point[1]);
    } else {
      context.moveTo(point[0], point[1]);
      pen = true;
    }
  }
  context.strokeStyle = look.color;
  context.lineWidth = role === "ink" ? 1.3 : 2.5;
  context.lineJoin = "round";
  context.setLineDash(DASHES[look.linestyle]);
  context.stroke();
  context.setLineDash([]);
}

function arrowHead(context, look, from, to) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  if (Math.hypot(to[0] - from[0], to[1] - from[1]) < 1) return;
  context.beginPath();
  context.moveTo(to[0], to[1]);
  for (const side of [-1, 1]) {
    const at = angle + Math.PI + side * 0.42;
    context.lineTo(to[0] + 15 * Math.cos(at), to[1] + 15 * Math.sin(at));
  }
  context.closePath();
  context.fillStyle = look.color;
  context.fill();
}

// ------------------------------------------------------------------ flat panels

function wrapped(context, text, room) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length && context.measureText(longer).width <= room) lines.splice(-1, 1, longer);
    else lines.push(word);
  }
  return lines;
}

function flatGeometry(panel, width, context) {
  const right = 14, top = 10;
  const span = (axis) => axis.high - axis.low;
  // Room for the longest number beside the axis. Which numbers stand there depends on the height,
  // and the height on the room that is left.
  let left = 54, across, down, label;
  for (;;) {
    across = Math.max(width - left - right, 60);
    const tall = panel.equal ? (across * span(panel.y)) / span(panel.x) : across * 0.78;
    down = clamp(tall, 120, 1.6 * across);
    const texts = ticksOf(panel.y, down, 40).map((tick) => context.measureText(tick.text).width);
    label = wrapped(context, panel.y.label, down + 2 * top);
    const need = 30 + LINE * (label.length - 1) + Math.max(...texts);
    if (need <= left) break;
    left = need;
  }
  const slot = across / panel.x.names.length;
  const names = panel.x.names.map((name) => wrapped(context, name, slot - 8));
  const bottom = 46 + LINE * (Math.max(1, ...names.map((lines) => lines.length)) - 1);
  return {
    left, top, across, down, names, label, numbers: [], height: top + down + bottom,
    x: scaleOf(panel.x, left, left + across),
    y: scaleOf(panel.y, top + down, top),
  };
}

function paintFlat(context, panel, view, g, cache) {
  const roles = view.look.roles;
  const at = (point) => point && [
    point[0] === null ? NaN : g.x(point[0]), point[1] === null ? NaN : g.y(point[1]),
  ];
  context.save();
  context.beginPath();
  context.rect(g.left, g.top, g.across, g.down);
  context.clip();
  for (const mark of panel.marks) {
    if (mark.kind === "grid") paintGrid(context, panel, mark, view, g, cache);
    if (mark.kind === "band") {
      const high = mark.x.map((x, k) => at([x, mark.high[k]]));
      const low = mark.x.map((x, k) => at([x, mark.low[k]]));
      context.beginPath();
      for (const [x, y] of [...high, ...low.reverse()]) {
        context.lineTo(x, clamp(y, -9999, 9999));
      }
      context.fillStyle = roles[mark.role].color + "22";
      context.fill();
    }
    if (mark.kind === "bars") paintBars(context, mark, roles[mark.role], g);
    if (mark.kind === "path") {
      const points = mark.at.map(at);
      const look = roles[mark.role];
      stroke(context, look, mark.role, mark.closed ? [...points, points[0]] : points);
      if (mark.arrow && points.length > 1) arrowHead(context, look, ...points.slice(-2));
      if (mark.dots) {
        context.fillStyle = look.color;
        for (const [x, y] of points) {
          context.beginPath();
          context.arc(x, y, 3.5, 0, 2 * Math.PI);
          context.fill();
        }
      }
    }
  }
  context.restore();
  paintAxes(context, panel, g);
  for (const mark of panel.marks) {
    if (mark.kind === "points") paintPoints(context, mark, view, g);
  }
}

function paintPoints(context, mark, view, g) {
  const look = view.look.roles[mark.role];
  mark.at.forEach((point, k) => {
    const [x, y] = view.placeOf(mark, k) ?? point;
    if (x === null || y === null) return;
    const [px, py] = [g.x(x), g.y(y)];
    const out = 12; // points beyond the limits are not drawn far from their panel
    if (px < g.left - out || px > g.left + g.across + out) return;
    if (py < g.top - out || py > g.top + g.down + out) return;
    marker(context, look, px, py, look.size * (mark.wide ? view.look.wide : 1), mark.hollow[k]);
    if (mark.names[k]) {
      context.fillStyle = view.look.ink;
      const reach = px + 10 + context.measureText(mark.names[k]).width;
      context.textAlign = reach < g.left + g.across + 10 ? "left" : "right";
      context.textBaseline = "middle";
      // The ring around a point with the focus must not cover its name.
      const away = mark.handle && view.keyOf(mark, k) === view.focused ? 22 : 10;
      haloText(context, mark.names[k], px + (context.textAlign === "left" ? away : -away), py - away - 1);
    }
  });
}

function paintGrid(context, panel, mark, view, g, cache) {
  const grid = view.grids[mark.serial];
  const values = view.valuesOf(mark.serial);
  if (!values) return;
  if (!grid.square) {
    const points = Array.from(values, (value, k) => [
      g.left + (g.across * k) / (values.length - 1), clamp(g.y(grid.base + value), -9999, 9999),
    ]);
    stroke(context, view.look.roles[mark.role], mark.role, points);
    return;
  }
  if (cache.values !== values) {
    cache.values = values;
    const size = fineFor(grid.side);
    const fine = interpolate(values, grid.side, size);
    const colors = grid.signed ? view.colors.signed : view.colors.sequential;
    cache.size = size;
    cache.raster = raster(fine, size, grid, colors);
    cache.lines = grid.levels.map((level) => contours(fine, size, level));
  }
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "high";
  // Half a cell sticks out on every side, so that nodes and not cells meet the edges.
  const half = [g.across / (cache.size - 1) / 2, g.down / (cache.size - 1) / 2];
  context.drawImage(
    cache.raster, g.left - half[0], g.top - half[1], g.across + 2 * half[0], g.down + 2 * half[1],
  );
  const place = ([x, y]) => [g.left + x * g.across, g.top + (1 - y) * g.down];
  context.strokeStyle = "rgba(34,34,34,.6)";
  context.lineWidth = 1;
  for (const lines of cache.lines) {
    for (const line of lines) {
      context.beginPath();
      for (const point of line) context.lineTo(...place(point));
      context.stroke();
    }
  }
  // Labels keep clear of points and of the names to their right.
  const taken = panel.marks.filter((mark) => mark.kind === "points").flatMap((mark) =>
    mark.at.flatMap((point, k) => {
      const [x, y] = view.placeOf(mark, k) ?? point;
      const [px, py] = [g.x(x), g.y(y)];
      const r = mark.wide ? 20 : 14;
      return mark.names[k] ? [[px, py, r], [px + 18, py - 11, 14]] : [[px, py, r]];
    }));
  labelContours(context, grid, cache.lines, place, g, taken);
}

// One label a level where it fits: away from the edges and from what is taken, [x, y, radius],
// and as level as possible, because "0.8" upright is easily read as "8.0".
function labelContours(context, grid, levels, place, g, taken) {
  context.fillStyle = "#222";
  context.textAlign = "center";
  context.textBaseline = "middle";
  levels.forEach((lines, k) => {
    const text = grid.texts[k];
    const need = context.measureText(text).width;
    const inset = need / 2 + 4;
    const longest = lines.reduce((best, line) => (line.length > best.length ? line : best), []);
    if (longest.length < 8) return;
    let best = null;
    for (let part = 0.1; part < 0.95; part += 0.1) {
      const middle = Math.floor(part * (longest.length - 1));
      const [x, y] = place(longest[middle]);
      if (x < g.left + inset || x > g.left + g.across - inset) continue;
      if (y < g.top + inset || y > g.top + g.down - inset) continue;
      if (taken.some(([a, b, r]) => Math.hypot(a - x, b - y) < need / 2 + r)) continue;
      const before = place(longest[Math.max(middle - 3, 0)]);
      const after = place(longest[Math.min(middle + 3, longest.length - 1)]);
      let angle = Math.atan2(after[1] - before[1], after[0] - before[0]);
      if (Math.abs(angle) > Math.PI / 2) angle -= Math.sign(angle) * Math.PI;
      if (!best || Math.abs(angle) < Math.abs(best.angle)) best = { x, y, angle };
    }
    if (!best) return;
    taken.push([best.x, best.y, need / 2 + 10]);
    context.save();
    context.translate(best.x, best.y);
    context.rotate(best.angle);
    haloText(context, text, 0, 0);
    context.restore();
  });
}

function paintBars(context, mark, look, g) {
  const [slot, slots] = mark.slot;
  const width = 0.8 / slots;
  context.textAlign = "center";
  mark.heights.forEach((height, k) => {
    if (height === null) return;
    const middle = k + (slot - (slots - 1) / 2) * width;
    const [from, to] = [g.x(middle - 0.46 * width), g.x(middle + 0.46 * width)];
    const [base, end] = [g.y(mark.base), clamp(g.y(height), -9999, 9999)];
    context.fillStyle = look.color;
    context.strokeStyle = "#222";
    context.lineWidth = 1;
    context.fillRect(from, Math.min(base, end), to - from, Math.abs(end - base));
    if (slot > 0) hatch(context, from, Math.min(base, end), to - from, Math.abs(end - base));
    context.strokeRect(from, Math.min(base, end), to - from, Math.abs(end - base));
    const text = short(height);
    if (context.measureText(text).width > (to - from) * 1.5) return;
    const up = end <= base;
    context.textBaseline = up ? "bottom" : "top";
    context.fillStyle = "#222";
    const [middleX, half] = [(from + to) / 2, context.measureText(text).width / 2];
    const [highest, lowest] = [g.top + (up ? LINE : 0), g.top + g.down - (up ? 0 : LINE)];
    // Where a neighbour's number stands already, this one goes a line further, or is left out.
    for (const away of [3, 3 + LINE]) {
      const y = clamp(end + (up ? -away : away), highest, lowest);
      const box = [middleX - half, middleX + half, up ? y - LINE : y, up ? y : y + LINE];
      if (g.numbers.some((other) => touch(box, other))) continue;
      g.numbers.push(box);
      haloText(context, text, middleX, y);
      break;
    }
  });
  context.beginPath();
  context.moveTo(g.left, g.y(mark.base));
  context.lineTo(g.left + g.across, g.y(mark.base));
  context.lineWidth = 1;
  context.strokeStyle = "#222";
  context.stroke();
}

// Boxes are [left, right, top, bottom].
function touch(a, b) {
  return a[0] < b[1] && b[0] < a[1] && a[2] < b[3] && b[2] < a[3];
}

function hatch(context, x, y, width, height) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.beginPath();
  for (let from = -height; from < width; from += 9) {
    context.moveTo(x + from, y + height);
    context.lineTo(x + from + height, y);
  }
  context.strokeStyle = "#222";
  context.stroke();
  context.restore();
}

function paintAxes(context, panel, g) {
  context.strokeStyle = context.fillStyle = "#222";
  context.lineWidth = 1;
  context.strokeRect(g.left + 0.5, g.top + 0.5, g.across - 1, g.down - 1);
  const bottom = g.top + g.down;
  context.textAlign = "center";
  context.textBaseline = "top";
  ticksOf(panel.x, g.across, 48).forEach((tick, k) => {
    const x = g.x(tick.at);
    context.fillRect(x - 0.5, bottom, 1, 5);
    const lines = g.names[k] ?? [tick.text];
    lines.forEach((line, place) => context.fillText(line, x, bottom + 8 + LINE * place));
  });
  context.fillText(panel.x.label, g.left + g.across / 2, g.height - 20);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of ticksOf(panel.y, g.down, 40)) {
    const y = g.y(tick.at);
    context.fillRect(g.left - 5, y - 0.5, 5, 1);
    context.fillText(tick.text, g.left - 8, y);
  }
  context.save();
  context.translate(10, g.top + g.down / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  g.label.forEach((line, place) => context.fillText(line, 0, LINE * place));
  context.restore();
}

// ------------------------------------------------------------------ surfaces

function projector(panel, width, height, turn) {
  const [ca, sa] = [Math.cos(turn.azimuth), Math.sin(turn.azimuth)];
  const [ce, se] = [Math.cos(turn.elevation), Math.sin(turn.elevation)];
  const size = Math.min(width, height) * 0.34;
  const unit = (axis, value) => (2 * (value - axis.low)) / (axis.high - axis.low) - 1;
  return ([x, y, z]) => {
    const [u, v, w] = [unit(panel.x, x), unit(panel.y, y), 0.7 * unit(panel.z, z)];
    const across = u * ca - v * sa;
    const away = u * sa + v * ca;
    const distance = 9 + away * ce - w * se;
    const scale = (size * 9) / distance;
    return [width / 2 + across * scale, height / 2 - (away * se + w * ce) * scale, distance];
  };
}

function paintSolid(context, panel, view, width, height, turn) {
  const to = projector(panel, width, height, turn);
  const roles = view.look.roles;
  paintBox(context, panel, to);
  const pieces = []; // [distance, paint], from far to near
  for (const mark of panel.marks) {
    if (mark.kind === "grid" && view.valuesOf(mark.serial)) {
      surface(pieces, panel, mark, view, to, context);
    }
  }
  const lines = panel.marks.filter((mark) => mark.kind === "path");
  const line = (mark, points) => stroke(context, roles[mark.role], mark.role, points);
  for (const mark of lines) {
    for (let k = 1; k < mark.at.length; k++) {
      if ([...mark.at[k - 1], ...mark.at[k]].includes(null)) continue;
      const steps = 12;
      const between = (t) => to(mark.at[k - 1].map((a, i) => a + t * (mark.at[k][i] - a)));
      for (let s = 0; s < steps; s++) {
        const [a, b] = [between(s / steps), between((s + 1) / steps)];
        pieces.push([(a[2] + b[2]) / 2 - 0.05, () => line(mark, [a, b])]);
      }
    }
  }
  pieces.sort((a, b) => b[0] - a[0]);
  for (const [, paint] of pieces) paint();
  // What the surface hides is still hinted at.
  context.globalAlpha = 0.4;
  for (const mark of lines) line(mark, mark.at.map((point) => point.includes(null) ? null : to(point)));
  context.globalAlpha = 1;
  for (const mark of panel.marks) {
    if (mark.kind !== "points") continue;
    const look = roles[mark.role];
    mark.at.forEach((point, k) => {
      if (point.includes(null)) return;
      const [x, y] = to(point);
      marker(context, look, x, y, look.size, mark.hollow[k]);
      if (!mark.names[k]) return;
      context.fillStyle = view.look.ink;
      const fits = x + 10 + context.measureText(mark.names[k]).width < width;
      context.textAlign = fits ? "left" : "right";
      haloText(context, mark.names[k], x + (fits ? 10 : -10), y - 10);
    });
  }
}

function surface(pieces, panel, mark, view, to, context) {
  const grid = view.grids[mark.serial];
  const fine = interpolate(view.valuesOf(mark.serial), grid.side, SOLID);
  const colors = grid.signed ? view.colors.signed : view.colors.sequential;
  const step = (axis, k) => axis.low + ((axis.high - axis.low) * k) / (SOLID - 1);
  const nodes = Array.from(fine, (value, at) => to([
    step(panel.x, at % SOLID), step(panel.y, Math.floor(at / SOLID)),
    clamp(grid.base + value, panel.z.low, panel.z.high),
  ]));
  for (let j = 0; j < SOLID - 1; j++) {
    for (let k = 0; k < SOLID - 1; k++) {
      const at = j * SOLID + k;
      const corners = [at, at + 1, at + SOLID + 1, at + SOLID];
      const heights = corners.map((corner) => fine[corner]);
      // What is wholly above the box is left out, so that the bottom can be seen.
      if (!(grid.base + Math.min(...heights) < panel.z.high)) continue;
      const color = 3 * shade(grid, (heights[0] + heights[1] + heights[2] + heights[3]) / 4);
      const rgb = `rgb(${colors[color]},${colors[color + 1]},${colors[color + 2]})`;
      const distance = corners.reduce((sum, corner) => sum + nodes[corner][2], 0) / 4;
      pieces.push([distance, () => {
        context.beginPath();
        for (const corner of corners) context.lineTo(nodes[corner][0], nodes[corner][1]);
        context.closePath();
        context.setLineDash([]);
        context.fillStyle = rgb;
        context.strokeStyle = "rgba(34,34,34,.28)";
        context.lineWidth = 0.6;
        context.fill();
        context.stroke();
      }]);
    }
  }
}

function paintBox(context, panel, to) {
  const { x, y, z } = panel;
  const line = (a, b) => {
    const [from, end] = [to(a), to(b)];
    context.beginPath();
    context.moveTo(from[0], from[1]);
    context.lineTo(end[0], end[1]);
    context.stroke();
  };
  context.strokeStyle = "#999";
  context.lineWidth = 1;
  context.setLineDash([]);
  const corners = [[x.low, y.low], [x.high, y.low], [x.high, y.high], [x.low, y.high]];
  corners.forEach((corner, k) => {
    line([...corner, z.low], [...corners[(k + 1) % 4], z.low]);
    line([...corner, z.low], [...corner, z.high]);
  });
  context.fillStyle = "#222";
  context.textAlign = "center";
  context.textBaseline = "middle";
  const middle = (axis) => (axis.low + axis.high) / 2;
  const out = (axis, part) => axis.low - part * (axis.high - axis.low);
  const write = (text, point) => haloText(context, text, ...to(point).slice(0, 2));
  write(x.label, [middle(x), out(y, 0.12), z.low]);
  write(y.label, [out(x, 0.12), middle(y), z.low]);
  // Heights stand at the leftmost upright edge, wherever the box was turned to.
  const edge = corners.reduce((a, b) => (to([...a, z.low])[0] < to([...b, z.low])[0] ? a : b));
  context.textAlign = "right";
  const beside = (text, [x, y], up) => {
    haloText(context, text, Math.max(x - 6, context.measureText(text).width + 2), y - up);
  };
  for (const tick of ticksOf(z, 160, 40)) beside(tick.text, to([...edge, tick.at]), 0);
  beside(z.label, to([...edge, z.high]), 20);
}

// ------------------------------------------------------------------ legend

function legendOf(panel, view) {
  const entries = panel.marks.filter((mark) => mark.label);
  return entries.map((mark) => ({ mark, look: view.look.roles[mark.role] }));
}

function paintKey(canvas, mark, look, ratio) {
  canvas.width = 34 * ratio;
  canvas.height = 18 * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  if (mark.kind === "points") {
    const hollow = mark.hollow.length > 0 && mark.hollow.every(Boolean);
    marker(context, look, 17, 9, Math.min(look.size, 12), hollow);
  } else if (mark.kind === "bars" || mark.kind === "band") {
    context.fillStyle = look.color + (mark.kind === "band" ? "22" : "");
    context.fillRect(4, 2, 26, 14);
    if (mark.kind === "bars" && mark.slot[0] > 0) hatch(context, 4, 2, 26, 14);
    context.strokeStyle = "#222";
    context.lineWidth = 1;
    context.strokeRect(4.5, 2.5, 25, 13);
  } else {
    stroke(context, look, mark.role, [[2, 9], [mark.arrow ? 22 : 32, 9]]);
    if (mark.arrow) arrowHead(context, look, [2, 9], [32, 9]);
  }
}

// ------------------------------------------------------------------ the view

function render({ model, el }) {
  const me = `${Date.now()}-${Math.random()}`; // answers are for one view of a model
  const root = element("div", "hopping-view", el);
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Interactive picture");
  // JupyterLab would take arrow keys for moving between cells.
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  const row = element("div", "hopping-panels", root);
  const words = element("p", "hopping-words", root);
  words.setAttribute("aria-live", "polite");
  const status = element("p", "hopping-status", root);
  status.setAttribute("role", "status");

  const parts = []; // the DOM of each panel
  const view = {
    look: model.get("look"), grids: {}, scene: { panels: [], words: "" }, held: new Map(),
    colors: {
      sequential: bytes(model.get("look").sequential), signed: bytes(model.get("look").signed),
    },
  };
  let decoded = new Map();
  view.valuesOf = (serial) => {
    const grid = view.grids[serial];
    if (!grid) return null;
    if (decoded.get(serial)?.from !== grid.values) {
      const values = floats(grid.values);
      grid.square = values.length === grid.side * grid.side;
      decoded.set(serial, { from: grid.values, values });
    }
    return decoded.get(serial).values;
  };
  // Where a point is held or was put, until the kernel's answer to it is here.
  const keyOf = (mark, k) => `${mark.handle}/${mark.single ? "" : k}`;
  view.keyOf = keyOf;
  view.placeOf = (mark, k) => (mark.handle ? view.held.get(keyOf(mark, k))?.at : undefined);

  // -------- messages: never a queue, the newest place next

  // One may be on its way while the kernel works on another, but only to a quick kernel: then the
  // time of the journey is not lost, and no answer is older than a moment.
  const QUICK = 40; // ms
  let room = 1;
  let sent = 0;
  let onWay = []; // [number, when it was sent]
  const moves = new Map();
  function send() {
    while (onWay.length < room && moves.size > 0) {
      const [key, move] = moves.entries().next().value;
      moves.delete(key);
      sent += 1;
      onWay.push([sent, performance.now()]);
      try {
        model.send({ view: me, number: sent, ...move });
      } catch {
        gone(); // the connection of a restarted kernel refuses to send
      }
    }
  }
  function gone() {
    status.textContent = "The kernel has restarted. Run this cell again to move the picture.";
  }
  function answered() {
    const answer = model.get("answer");
    if (answer.view !== me) return;
    onWay = onWay.filter(([number]) => number > answer.done);
    room = answer.spent < QUICK ? 2 : 1;
    status.textContent = "";
    send();
    schedule();
  }
  function moveTo(mark, k, at) {
    const key = keyOf(mark, k);
    view.held.set(key, { at });
    moves.set(key, { name: mark.handle, index: mark.single ? null : k, at });
    send();
    schedule();
  }
  // ipywidgets leaves its sliders without a name, and says the exponent of a logarithmic one.
  function nameControls() {
    const box = el.closest(".widget-vbox") ?? el.parentElement;
    for (const handle of box?.querySelectorAll(".noUi-handle") ?? []) {
      const control = handle.closest(".widget-slider");
      const name = control.querySelector(".widget-label").textContent;
      const readout = control.querySelector(".widget-readout");
      handle.setAttribute("aria-label", name);
      handle.setAttribute("aria-valuetext", readout.textContent);
      readout.setAttribute("role", "textbox");
      readout.setAttribute("aria-label", `${name}, as a number`);
      read.observe(readout, { childList: true, characterData: true, subtree: true });
    }
  }
  const read = new MutationObserver(nameControls); // what is said is the number that is shown
  const watch = setInterval(() => {
    nameControls();
    if (el.closest(".jupyter-widgets-disconnected")) {
      gone();
    } else if (onWay.length > 0 && performance.now() - onWay[0][1] > 1500) {
      status.textContent = "Waiting for the kernel … If it stays silent, restart it.";
    }
  }, 500);

  // -------- movable points

  let dragging = null;
  function handles(part, panel, g) {
    const wanted = new Map();
    for (const mark of panel.marks) {
      if (mark.kind !== "points" || !mark.handle) continue;
      mark.at.forEach((point, k) => wanted.set(keyOf(mark, k), { mark, k, point }));
    }
    for (const [key, handle] of part.handles) {
      if (!wanted.has(key)) {
        handle.remove();
        part.handles.delete(key);
      }
    }
    for (const [key, { mark, k, point }] of wanted) {
      let handle = part.handles.get(key);
      if (!handle) {
        handle = element("div", "hopping-handle", part.stage);
        handle.tabIndex = 0;
        handle.setAttribute("role", "slider");
        handle.setAttribute("aria-roledescription", "movable point");
        listen(handle, part);
        part.handles.set(key, handle);
      }
      const [x, y] = view.placeOf(mark, k) ?? point;
      handle.mark = mark;
      handle.index = k;
      const px = clamp(g.x(x), g.left, g.left + g.across);
      const py = clamp(g.y(y), g.top, g.top + g.down);
      const now = `translate(${px}px, ${py}px)`;
      if (handle.style.transform === now && handle.said === x + "," + y) continue;
      handle.said = x + "," + y;
      handle.style.transform = now; // moves without a new layout of the page
      const name = [mark.single || !mark.names[k] ? mark.label : "", mark.names[k]];
      const said = `${panel.x.label} ${short(x)}` + (mark.free > 1 ? `, ${panel.y.label} ${short(y)}` : "");
      const set = (attribute, value) => handle.setAttribute(attribute, value);
      set("aria-label", `${name.filter(Boolean).join(" ")}: arrow keys move it, Shift for bigger steps`);
      set("aria-valuemin", panel.x.low);
      set("aria-valuemax", panel.x.high);
      set("aria-valuenow", x);
      set("aria-valuetext", said);
    }
  }
  function within(part, handle, x, y) {
    const { panel } = part;
    const at = [clamp(x, panel.x.low, panel.x.high), clamp(y, panel.y.low, panel.y.high)];
    const now = view.placeOf(handle.mark, handle.index) ?? handle.mark.at[handle.index];
    return handle.mark.free > 1 ? at : [at[0], now[1]];
  }
  function listen(handle, part) {
    handle.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      event.preventDefault();
      handle.focus({ preventScroll: true });
      handle.setPointerCapture(event.pointerId);
      dragging = handle;
    });
    handle.addEventListener("pointermove", (event) => {
      if (dragging !== handle) return;
      const box = part.canvas.getBoundingClientRect();
      const { g } = part;
      const x = g.x.back(event.clientX - box.left);
      const y = g.y.back(event.clientY - box.top);
      moveTo(handle.mark, handle.index, within(part, handle, x, y));
    });
    const release = () => {
      if (dragging === handle) dragging = null;
      schedule();
    };
    for (const change of ["focus", "blur"]) {
      handle.addEventListener(change, () => {
        view.focused = change === "focus" ? keyOf(handle.mark, handle.index) : null;
        schedule();
      });
    }
    handle.addEventListener("pointerup", release);
    handle.addEventListener("pointercancel", release);
    handle.addEventListener("keydown", (event) => {
      const arrow = ARROWS[event.key];
      if (!arrow) return;
      event.preventDefault();
      event.stopPropagation();
      const now = view.placeOf(handle.mark, handle.index) ?? handle.mark.at[handle.index];
      const step = event.shiftKey ? 20 : 100;
      const { x, y } = part.panel;
      const [dx, dy] = [(x.high - x.low) / step, (y.high - y.low) / step];
      const to = within(part, handle, now[0] + arrow[0] * dx, now[1] + arrow[1] * dy);
      moveTo(handle.mark, handle.index, to);
    });
  }

  // -------- turning a surface

  function listenTurn(part) {
    const { turner, turn } = part;
    turner.tabIndex = 0;
    turner.setAttribute("role", "slider");
    turner.setAttribute("aria-label", "Direction of view: arrow keys turn the surface");
    turner.setAttribute("aria-valuemin", -180);
    turner.setAttribute("aria-valuemax", 180);
    const by = (azimuth, elevation) => {
      const full = 2 * Math.PI;
      turn.azimuth = ((turn.azimuth + azimuth + 1.5 * full) % full) - full / 2;
      turn.elevation = clamp(turn.elevation + elevation, 0.05, 1.5);
      schedule();
    };
    let from = null;
    turner.addEventListener("pointerdown", (event) => {
      from = [event.clientX, event.clientY];
      turner.setPointerCapture(event.pointerId);
    });
    turner.addEventListener("pointermove", (event) => {
      if (!from) return;
      by((event.clientX - from[0]) * 0.01, (event.clientY - from[1]) * 0.01);
      from = [event.clientX, event.clientY];
    });
    for (const end of ["pointerup", "pointercancel"]) {
      turner.addEventListener(end, () => { from = null; });
    }
    turner.addEventListener("keydown", (event) => {
      const arrow = ARROWS[event.key];
      if (!arrow) return;
      event.preventDefault();
      event.stopPropagation();
      const step = event.shiftKey ? 0.35 : 0.09;
      by(arrow[0] * step, arrow[1] * step);
    });
  }

  // -------- painting

  function arrange() {
    const { panels } = view.scene;
    while (parts.length > panels.length) parts.pop().figure.remove();
    panels.forEach((panel, k) => {
      if (parts[k] && Boolean(parts[k].turner) === Boolean(panel.z)) return;
      const figure = element("figure", "hopping-panel");
      if (parts[k]) parts[k].figure.replaceWith(figure);
      else row.append(figure);
      const part = {
        figure, title: element("figcaption", "", figure), handles: new Map(), cache: {},
        turn: { azimuth: 0.6, elevation: 0.5 },
      };
      part.stage = element("div", "hopping-stage", figure);
      part.canvas = element("canvas", "", part.stage);
      part.canvas.setAttribute("role", "img");
      if (panel.z) {
        part.turner = element("div", "hopping-turner", part.stage);
        listenTurn(part);
      }
      part.note = element("p", "hopping-note", part.stage);
      part.legend = element("ul", "hopping-legend", figure);
      parts[k] = part;
    });
  }
  function paintPanel(part, panel) {
    part.panel = panel;
    const width = part.stage.clientWidth;
    if (width < 40) return; // hidden, or not laid out yet
    const ratio = window.devicePixelRatio || 1;
    const context = part.canvas.getContext("2d");
    context.font = FONT;
    const solid = Boolean(panel.z);
    const g = solid ? { height: Math.min(width * 0.92, 460) } : flatGeometry(panel, width, context);
    part.g = g;
    const [w, h] = [Math.round(width * ratio), Math.round(g.height * ratio)];
    if (part.canvas.width !== w || part.canvas.height !== h) {
      part.canvas.width = w;
      part.canvas.height = h;
      part.canvas.style.height = `${g.height}px`;
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = view.look.paper;
    context.fillRect(0, 0, w, h);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = FONT;
    if (panel.z) {
      paintSolid(context, panel, view, width, g.height, part.turn);
      const degrees = (angle) => Math.round((angle * 180) / Math.PI);
      part.turner.setAttribute("aria-valuenow", degrees(part.turn.azimuth));
      const said = `turned ${degrees(part.turn.azimuth)}°, from ${degrees(part.turn.elevation)}° above`;
      part.turner.setAttribute("aria-valuetext", said);
    } else {
      paintFlat(context, panel, view, g, part.cache);
      handles(part, panel, g);
    }
    if (part.title.textContent !== panel.title) {
      part.title.textContent = panel.title;
      part.canvas.setAttribute("aria-label", panel.title);
    }
    const notes = new Set(panel.marks.filter((m) => m.kind === "note").map((m) => m.text));
    const note = [...notes].join("\n");
    if (part.note.textContent !== note) part.note.textContent = note;
    // A message about a mark must not hide the landscape it is missing from.
    const rest = panel.marks.some((mark) => mark.kind !== "note" && mark.kind !== "points");
    part.note.classList.toggle("hopping-aside", rest);
    const entries = legendOf(panel, view);
    const key = JSON.stringify([ratio, entries.map(({ mark }) => [mark.kind, mark.role, mark.label, mark.hollow])]);
    if (part.legendKey !== key) {
      part.legendKey = key;
      part.legend.replaceChildren();
      for (const { mark, look } of entries) {
        const item = element("li", "", part.legend);
        const canvas = element("canvas", "", item);
        canvas.setAttribute("aria-hidden", "true");
        paintKey(canvas, mark, look, ratio);
        item.append(mark.label);
      }
    }
  }
  let frame = 0;
  let painted = null;
  function paint() {
    frame = 0;
    // Not before the handles have their new places: a key would move a point from its old one.
    if (onWay.length === 0 && !dragging) view.held.clear();
    arrange();
    view.scene.panels.forEach((panel, k) => paintPanel(parts[k], panel));
    // How often it was painted, and how many answers of the kernel were, for tests and benchmarks.
    root.dataset.painted = Number(root.dataset.painted ?? 0) + 1;
    if (painted !== view.scene) root.dataset.answers = Number(root.dataset.answers ?? 0) + 1;
    painted = view.scene;
  }
  function schedule() {
    if (!frame) frame = requestAnimationFrame(paint);
  }
  let settle = 0;
  let saying = "";
  function update() {
    view.scene = model.get("scene");
    if (saying !== view.scene.words) {
      // The words are read aloud, so they wait until the picture rests.
      const wait = saying ? 350 : 0;
      saying = view.scene.words;
      clearTimeout(settle);
      settle = setTimeout(() => { words.textContent = saying; }, wait);
    }
    view.grids = model.get("grids");
    decoded = new Map([...decoded].filter(([serial]) => serial in view.grids));
    schedule();
  }

  const resized = new ResizeObserver(schedule);
  resized.observe(row);
  window.addEventListener("resize", schedule); // zooming changes the pixel ratio
  model.on("change:scene", update);
  model.on("change:grids", update);
  model.on("change:answer", answered);
  update();
  return () => {
    clearInterval(watch);
    clearTimeout(settle);
    cancelAnimationFrame(frame);
    resized.disconnect();
    read.disconnect();
    window.removeEventListener("resize", schedule);
    model.off("change:scene", update);
    model.off("change:grids", update);
    model.off("change:answer", answered);
  };
}

export default { render };
