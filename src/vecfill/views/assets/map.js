"use strict";
// Known entities grey, imputed ones in colour; the chosen one is joined to what it is made of.
// Colours of Okabe and Ito (2008), which people who see two primary colours tell apart, and two more like them.
const GROUP_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#e3d83a", "#7d7d7d", "#5b3a8c", "#7a4a1e"];
const MOST_CATEGORIES = GROUP_COLOURS.length;
const colourOf = (number) => GROUP_COLOURS[number % GROUP_COLOURS.length];
const SURE = [10, 110, 95], SURE_DARK = [95, 211, 189], UNSURE = [224, 150, 70];
const EDGE = 12, LARGEST_ZOOM = 60;

class PointMap {
  constructor(canvas, tip, data, options) {
    // options: confidence, describe(kind, row) -> nodes, onPick(row), onSelect(rows), linksOf(row)
    Object.assign(this, { canvas, tip, data, ...options, chosen: -1, zoom: 1, dx: 0, dy: 0, shown: null, colour: "confidence", lasso: null, isSelecting: false, waiting: false });
    this.places = new Map();
    for (let k = 0; k < data.imputed.length; k += 3) this.places.set(data.imputed[k], k);
    this.knownPlaces = new Map();
    for (let k = 0; k < data.known.length; k += 3) this.knownPlaces.set(data.known[k], k);
    if (this.confidence && data.imputed.length) {
      const values = [...this.places.keys()].map((row) => this.confidence[row]).sort((a, b) => a - b);
      this.range = [values[Math.floor(0.02 * (values.length - 1))], values[Math.ceil(0.98 * (values.length - 1))]];
    }
    this.pointers = new Map();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  listen() {
    const { canvas, pointers } = this;
    let moved = false;
    canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
      moved = pointers.size > 1;
      if (this.isSelecting) this.lasso = [[event.offsetX, event.offsetY]];
      try { canvas.setPointerCapture(event.pointerId); } catch { /* the pointer is gone */ }
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = [event.offsetX, event.offsetY], from = pointers.get(event.pointerId);
      if (!from) {
        this.hover(event);
        return;
      }
      if (this.lasso) {
        this.lasso.push(at);
        this.redraw();
        return;
      }
      if (pointers.size === 2) {
        const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
        const before = Math.hypot(from[0] - other[0], from[1] - other[1]), now = Math.hypot(at[0] - other[0], at[1] - other[1]);
        if (before > 0) this.scale(now / before, (at[0] + other[0]) / 2, (at[1] + other[1]) / 2);
        pointers.set(event.pointerId, at);
      } else if (moved || Math.hypot(at[0] - from[0], at[1] - from[1]) > 4) {
        moved = true;
        this.tip.hidden = true;
        this.dx += at[0] - from[0];
        this.dy += at[1] - from[1];
        pointers.set(event.pointerId, at);
        this.redraw();
      }
    });
    const end = (event, isDone) => {
      if (!pointers.delete(event.pointerId)) return;
      if (this.lasso) {
        const path = this.lasso;
        this.lasso = null;
        if (isDone && path.length > 2) this.onSelect(this.within(path));
        this.redraw();
      } else if (isDone && !moved) this.pick(event);
    };
    canvas.addEventListener("pointerup", (event) => end(event, true));
    canvas.addEventListener("pointercancel", (event) => end(event, false));
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("wheel", (event) => {
      // A plain wheel scrolls the page; trackpads report a pinch as a wheel with Ctrl.
      if (!event.ctrlKey && !event.metaKey) {
        this.onHint("Hold Ctrl (⌘ on a Mac) and scroll to zoom, or pinch");
        return;
      }
      event.preventDefault();
      this.scale(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 200), event.offsetX, event.offsetY);
    }, { passive: false });
  }

  scale(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const zoom = Math.min(LARGEST_ZOOM, Math.max(1, this.zoom * factor));
    const real = zoom / this.zoom;
    this.dx = x - (x - this.dx) * real;
    this.dy = y - (y - this.dy) * real;
    this.zoom = zoom;
    if (zoom === 1) this.dx = this.dy = 0;
    this.redraw();
  }

  reset() {
    this.zoom = 1;
    this.dx = this.dy = 0;
    this.redraw();
  }

  // Where grid coordinates lie on the canvas before zoom and shift: [unit, left, low].
  get base() {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const unit = Math.min((width - 2 * EDGE) / (this.data.width || 1), (height - 2 * EDGE) / (this.data.height || 1));
    return [unit, (width - unit * this.data.width) / 2, (height + unit * this.data.height) / 2];
  }

  at(x, y, [unit, left, low] = this.base) {
    return [(left + unit * x) * this.zoom + this.dx, (low - unit * y) * this.zoom + this.dy];
  }

  // Show some imputed entities, and what the first is made of, as large as they fit.
  fit(rows, withLinks = false) {
    const points = [];
    for (const row of rows) {
      const k = this.places.get(row);
      if (k !== undefined) points.push([this.data.imputed[k + 1], this.data.imputed[k + 2]]);
      if (!withLinks) continue;
      for (const [known, share] of this.linksOf(row)) {
        const at = this.knownPlaces.get(known);
        if (at !== undefined && share >= 30) points.push([this.data.known[at + 1], this.data.known[at + 2]]);
      }
    }
    if (!points.length) return;
    const [unit, left, low] = this.base;
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const xs = points.map(([x]) => left + unit * x), ys = points.map(([, y]) => low - unit * y);
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const zoom = Math.min((0.7 * width) / Math.max(1, x1 - x0), (0.7 * height) / Math.max(1, y1 - y0), 10);
    this.zoom = Math.max(1, zoom);
    this.dx = width / 2 - ((x0 + x1) / 2) * this.zoom;
    this.dy = height / 2 - ((y0 + y1) / 2) * this.zoom;
    if (this.zoom === 1) this.dx = this.dy = 0;
    this.redraw();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  inkOf(list, k) {
    const isKnown = list === this.data.known;
    if (this.colour === "group") {
      const group = (isKnown ? this.data.known_group : this.data.imputed_group)[k / 3];
      return colourOf(group);
    }
    if (isKnown) return this.theme.known;
    if (this.colour.numbers) {
      const number = this.colour.numbers[list[k]];
      return number === undefined ? this.theme.known : colourOf(number);
    }
    if (!this.range) return this.theme.accent;
    const [low, high] = this.range;
    const part = Math.max(0, Math.min(1, (this.confidence[list[k]] - low) / Math.max(1, high - low)));
    const sure = this.theme.isDark ? SURE_DARK : SURE;
    // Sixteen shades: as many as anybody can tell apart, and few changes of colour while drawing.
    const step = Math.round(part * 15) / 15;
    return `rgb(${UNSURE.map((each, at) => Math.round(each + (sure[at] - each) * step)).join(" ")})`;
  }

  draw() {
    const { canvas } = this, ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const style = getComputedStyle(document.documentElement), value = (name) => style.getPropertyValue(name).trim();
    this.theme = { known: value("--known"), accent: value("--accent"), ink: value("--ink"), card: value("--card"), land: value("--land"), sea: value("--sea"), coast: value("--coast"), isDark: style.colorScheme === "dark" };
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const base = this.base;
    if (this.data.coast) this.drawCoast(pen, base, width, height);
    const many = this.data.known.length + this.data.imputed.length > 30000;
    this.size = Math.min(3.4, 1 + Math.sqrt(this.zoom) * 0.5) * (many ? 0.75 : 1) * (width < 500 ? 0.65 : 1);
    this.dots(pen, base, this.data.known, this.colour === "group" ? 0.35 : 0.55, this.size);
    this.dots(pen, base, this.data.imputed, 0.85, this.size + 0.6);
    pen.globalAlpha = 1;
    if (this.data.spots) this.drawLabels(pen, base, width, height);
    this.drawChosen(pen, base);
    if (this.lasso) this.drawLasso(pen);
  }

  drawCoast(pen, base, width, height) {
    const { coast, coast_from: from, coast_step: step } = this.data;
    pen.fillStyle = this.theme.sea;
    pen.fillRect(0, 0, width, height);
    pen.beginPath();
    for (const ring of coast) {
      let x = 0, y = 0;
      for (let k = 0; k < ring.length; k += 2) {
        x += ring[k];
        y += ring[k + 1];
        const [px, py] = this.at(from[0] + x * step, from[1] + y * step, base);
        if (k) pen.lineTo(px, py);
        else pen.moveTo(px, py);
      }
      pen.closePath();
    }
    pen.fillStyle = this.theme.land;
    pen.fill("evenodd");
    pen.strokeStyle = this.theme.coast;
    pen.lineWidth = 0.75;
    pen.stroke();
  }

  dots(pen, base, list, alpha, radius) {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const isImputed = list === this.data.imputed;
    for (let k = 0; k < list.length; k += 3) {
      const [x, y] = this.at(list[k + 1], list[k + 2], base);
      if (x < -5 || y < -5 || x > width + 5 || y > height + 5) continue;
      const isFaint = this.shown && !(isImputed && this.shown.has(list[k]));
      pen.globalAlpha = isFaint ? 0.13 : alpha;
      pen.fillStyle = this.inkOf(list, k);
      pen.beginPath();
      pen.arc(x, y, radius, 0, 7);
      pen.fill();
    }
  }

  drawLabels(pen, base, width, height) {
    const taken = [];
    pen.font = `600 ${width < 500 ? 11 : 13}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.lineJoin = "round";
    this.data.spots.forEach(([gx, gy], group) => {
      const text = short(this.data.groups[group]);
      const [x, y] = this.at(gx, gy, base), half = pen.measureText(text).width / 2 + 4;
      const cx = Math.max(half, Math.min(width - half, x));
      if (y < 12 || y > height - 4 || x < -half || x > width + half) return;
      if (taken.some(([ox, oy, oh]) => Math.abs(cx - ox) < half + oh && Math.abs(y - oy) < 17)) return;
      taken.push([cx, y, half]);
      pen.strokeStyle = this.theme.card;
      pen.lineWidth = 4;
      pen.strokeText(text, cx, y);
      pen.fillStyle = this.colour === "group" && !this.theme.isDark ? colourOf(group) : this.theme.ink;
      pen.fillText(text, cx, y);
    });
  }

  drawChosen(pen, base) {
    const place = this.places.get(this.chosen);
    if (place === undefined) return;
    const [x, y] = this.at(this.data.imputed[place + 1], this.data.imputed[place + 2], base);
    const { ink, accent, card } = this.theme;
    const links = this.linksOf(this.chosen), largest = Math.max(...links.map(([, share]) => share), 0);
    for (const [known, share] of links) {
      // A line says that a known entity matters; a tenth of the largest share is where that ends.
      if (share < largest / 10) continue;
      const k = this.knownPlaces.get(known);
      if (k === undefined) continue;
      const [toX, toY] = this.at(this.data.known[k + 1], this.data.known[k + 2], base);
      pen.strokeStyle = ink;
      pen.globalAlpha = 0.3 + 0.7 * Math.sqrt(share / 1000);
      pen.lineWidth = 0.8 + 6 * (share / 1000);
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(toX, toY);
      pen.stroke();
      pen.beginPath();
      pen.arc(toX, toY, this.size + 1.5, 0, 7);
      pen.fillStyle = ink;
      pen.fill();
    }
    pen.globalAlpha = 1;
    pen.fillStyle = accent;
    pen.strokeStyle = card;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, this.size + 4, 0, 7);
    pen.fill();
    pen.stroke();
  }

  drawLasso(pen) {
    pen.strokeStyle = this.theme.accent;
    pen.fillStyle = this.theme.accent;
    pen.lineWidth = 1.5;
    pen.beginPath();
    this.lasso.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
    pen.stroke();
    pen.globalAlpha = 0.12;
    pen.fill();
    pen.globalAlpha = 1;
  }

  // Imputed entities inside a closed path.
  within(path) {
    const base = this.base, found = new Set();
    for (const [row, k] of this.places) {
      const [x, y] = this.at(this.data.imputed[k + 1], this.data.imputed[k + 2], base);
      let inside = false;
      for (let i = 0, j = path.length - 1; i < path.length; j = i, i += 1) {
        const [xi, yi] = path[i], [xj, yj] = path[j];
        if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
      }
      if (inside) found.add(row);
    }
    return found;
  }

  near(event) {
    const base = this.base;
    let best = null, least = 14 * 14;
    for (const [kind, list] of [["known", this.data.known], ["imputed", this.data.imputed]]) {
      for (let k = 0; k < list.length; k += 3) {
        const [px, py] = this.at(list[k + 1], list[k + 2], base);
        const away = (px - event.offsetX) ** 2 + (py - event.offsetY) ** 2;
        if (away <= least) {
          least = away;
          best = { kind, row: list[k], x: px, y: py };
        }
      }
    }
    return best;
  }

  hover(event) {
    const found = this.near(event);
    this.tip.hidden = !found;
    this.canvas.style.cursor = this.isSelecting ? "crosshair" : found && found.kind === "imputed" ? "pointer" : "grab";
    if (!found) return;
    this.tip.replaceChildren(...this.describe(found.kind, found.row));
    const room = this.canvas.clientWidth - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(0, Math.min(found.x + 12, room))}px`;
    const above = found.y - this.tip.offsetHeight - 10;
    this.tip.style.top = `${above > 0 ? above : found.y + 14}px`;
  }

  pick(event) {
    const found = this.near(event);
    if (found && found.kind === "imputed") this.onPick(found.row);
  }

  choose(row) {
    this.chosen = row;
    this.redraw();
  }
}
