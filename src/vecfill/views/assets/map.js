"use strict";
// Known entities grey, imputed ones in colour; the chosen one is joined to what it is made of.
class PointMap {
  constructor(canvas, tip, data, { confidence, label, onPick, linksOf }) {
    Object.assign(this, { canvas, tip, data, confidence, label, onPick, linksOf, chosen: -1, zoom: 1, dx: 0, dy: 0 });
    this.places = new Map();
    for (let k = 0; k < data.imputed.length; k += 3) this.places.set(data.imputed[k], k);
    this.knownPlaces = new Map();
    for (let k = 0; k < data.known.length; k += 3) this.knownPlaces.set(data.known[k], k);
    let from = null, moved = false;
    canvas.addEventListener("pointerdown", (event) => { from = [event.clientX, event.clientY, this.dx, this.dy]; moved = false; });
    canvas.addEventListener("pointermove", (event) => {
      if (from && event.buttons) {
        const [x, y] = [event.clientX - from[0], event.clientY - from[1]];
        if (moved || Math.hypot(x, y) > 4) {
          moved = true;
          this.dx = from[2] + x;
          this.dy = from[3] + y;
          this.draw();
        }
      } else this.hover(event);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (from && !moved) this.pick(event);
      from = null;
    });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; from = null; });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.scale(event.deltaY < 0 ? 1.25 : 0.8, event.offsetX, event.offsetY);
    }, { passive: false });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  scale(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const zoom = Math.min(40, Math.max(1, this.zoom * factor));
    const real = zoom / this.zoom;
    this.dx = x - (x - this.dx) * real;
    this.dy = y - (y - this.dy) * real;
    this.zoom = zoom;
    if (zoom === 1) this.dx = this.dy = 0;
    this.draw();
  }

  reset() {
    this.zoom = 1;
    this.dx = this.dy = 0;
    this.draw();
  }

  place(list, k) {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight, edge = 12;
    const unit = Math.min((width - 2 * edge) / (this.data.width || 1), (height - 2 * edge) / (this.data.height || 1));
    const left = (width - unit * this.data.width) / 2, low = (height + unit * this.data.height) / 2;
    return [(left + unit * list[k + 1]) * this.zoom + this.dx, (low - unit * list[k + 2]) * this.zoom + this.dy];
  }

  draw() {
    const { canvas } = this, ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const grey = style.getPropertyValue("--known").trim(), accent = style.getPropertyValue("--accent").trim();
    const ink = style.getPropertyValue("--ink").trim();
    pen.scale(ratio, ratio);
    const size = Math.min(3, 1 + Math.sqrt(this.zoom) * 0.5) * (this.data.known.length + this.data.imputed.length > 30000 ? 0.75 : 1) * (width < 500 ? 0.65 : 1);
    const dots = (list, alpha, colour, radius) => {
      pen.fillStyle = colour;
      for (let k = 0; k < list.length; k += 3) {
        const [x, y] = this.place(list, k);
        if (x < -5 || y < -5 || x > width + 5 || y > height + 5) continue;
        pen.globalAlpha = alpha(list[k]);
        pen.beginPath();
        pen.arc(x, y, radius, 0, 7);
        pen.fill();
      }
    };
    dots(this.data.known, () => 0.55, grey, size);
    dots(this.data.imputed, (row) => (this.confidence ? 0.3 + 0.7 * Math.min(1, this.confidence[row] / 700) : 0.8), accent, size + 0.6);
    pen.globalAlpha = 1;
    const at = this.places.get(this.chosen);
    if (at === undefined) return;
    const [x, y] = this.place(this.data.imputed, at);
    for (const [known, share] of this.linksOf(this.chosen)) {
      const k = this.knownPlaces.get(known);
      if (k === undefined) continue;
      const [toX, toY] = this.place(this.data.known, k);
      pen.strokeStyle = ink;
      pen.globalAlpha = 0.25 + 0.75 * Math.sqrt(share / 1000);
      pen.lineWidth = 0.75 + 3 * (share / 1000);
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(toX, toY);
      pen.stroke();
      pen.beginPath();
      pen.arc(toX, toY, size + 1.5, 0, 7);
      pen.fillStyle = ink;
      pen.fill();
    }
    pen.globalAlpha = 1;
    pen.fillStyle = accent;
    pen.strokeStyle = ink;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, size + 4, 0, 7);
    pen.fill();
    pen.stroke();
  }

  near(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, least = 14 * 14;
    for (const [kind, list] of [["known", this.data.known], ["imputed", this.data.imputed]]) {
      for (let k = 0; k < list.length; k += 3) {
        const [px, py] = this.place(list, k);
        const away = (px - x) ** 2 + (py - y) ** 2;
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
    if (!found) return;
    this.tip.textContent = short(this.label(found.kind, found.row));
    const room = this.canvas.clientWidth - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(0, Math.min(found.x + 10, room))}px`;
    this.tip.style.top = `${Math.max(0, found.y - 32)}px`;
  }

  pick(event) {
    const found = this.near(event);
    if (found && found.kind === "imputed") this.onPick(found.row);
  }

  choose(row) {
    this.chosen = row;
    this.draw();
  }
}
