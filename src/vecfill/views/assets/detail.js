"use strict";
// What is told about one imputed entity: its columns, what it is made of, what it is near to.
class Detail {
  constructor(panel, data, { onClose }) {
    Object.assign(this, { panel, data, onClose });
  }

  show(row) {
    const { panel, data } = this, { entities } = data;
    panel.replaceChildren();
    panel.onkeydown = row < 0 ? null : (event) => { if (event.key === "Escape") this.onClose(row); };
    if (row < 0) {
      panel.append(el("h3", { id: "detail-title", text: "What is it made of?" }), el("p", { class: "quiet", text: entities.name.length
        ? "Choose an entity in the table or on the map to see which known entities its vector is made of and which it is near."
        : "Nothing was imputed, so there is nothing to explain." }));
      return;
    }
    const title = nameNode(entities.name[row], "h3", { id: "detail-title" });
    const link = el("a", { class: "quiet", id: "entity-link", href: `#entity=${encodeURIComponent(entities.name[row])}`, text: "Link", title: "A link that opens this page with this entity" });
    panel.append(el("div", { class: "detail-head" }, [title, el("div", { class: "group" }, [link, el("button", { type: "button", text: "Close", on: { click: () => this.onClose(row) } })])]));
    if (entities.confidence) {
      const level = Math.round(data.confidence.level * 100);
      panel.append(el("p", { class: "quiet", text: `Expected centred cosine ${fixed(entities.confidence[row])}; at least ${fixed(entities.lower[row])} in ${level} % of cases.` }));
    }
    this.columns(row);
    this.made(row);
    const near = entities.nearest[row];
    if (near && near.length) {
      panel.append(el("h4", { text: "Nearest known vectors, by cosine" }), el("ul", { class: "shares" }, near.map((k, place) =>
        el("li", {}, [nameNode(data.known[k], "span", { class: "name" }), el("span", { text: fixed(entities.cosine[row][place]) })]))));
    }
  }

  columns(row) {
    const { data } = this;
    const pairs = data.columns.map((column, at) => [column.name, data.entities.columns[at][row]]).filter(([, cell]) => cell !== null && cell !== undefined);
    if (!pairs.length) return;
    this.panel.append(el("dl", { class: "facts own gap" }, pairs.flatMap(([name, cell]) => [el("dt", {}, nameNode(name)), el("dd", {}, nameNode(cellText(cell)))])));
  }

  made(row) {
    const { panel, data } = this, { entities } = data;
    panel.append(el("h4", { text: "Made of" }));
    const list = entities.contributors[row];
    if (!list) {
      panel.append(el("p", { class: "quiet", text: "Not included in this page. In Python, result.explain(name) shows it." }));
      return;
    }
    const trend = entities.trend[row], offset = entities.offset[row];
    if (offset > 0) panel.append(el("p", { class: "quiet", text: `${Math.round(offset / 10)} % is the offset of rare entities, which is shared by all vectors of this rarity.` }));
    if (entities.by_source) {
      const bars = data.sources.map((source, at) => [nameNode(source.name, "span", { class: "name" }), entities.by_source[row][at]]).filter(([, value]) => value);
      panel.append(el("p", { class: "quiet", text: "By source:" }), el("ul", { class: "shares" }, bars.map(([label, value]) => shareLine(label, value))));
    }
    if (trend > 0) {
      const alone = data.setting.residual_share === 0;
      panel.append(el("p", { class: "quiet", text: alone ? "This vector is the linear trend of the table alone." : `${Math.round(trend / 10)} % comes from the linear trend of the table.` }));
      const drivers = (entities.drivers || [])[row];
      if (drivers && drivers.length) {
        panel.append(el("p", { class: "quiet", text: "Columns that drive the trend:" }), el("ul", { class: "shares", id: "drivers" },
          drivers.map(([name, part]) => shareLine(nameNode(data.driver_names[name], "span", { class: "name" }), part, "trend"))));
      }
      panel.append(el("p", { class: "quiet", text: alone ? "Below are the known entities that its neighbours would mix:" : "The rest comes from these known entities:" }));
    }
    const shares = entities.shares[row];
    const other = 1000 - shares.reduce((sum, each) => sum + each, 0);
    const lines = list.map((k, place) => shareLine(nameNode(data.known[k], "span", { class: "name" }), shares[place]));
    const nOther = data.n_known - list.length;
    if (other > 0) lines.push(shareLine(el("span", { class: "name", text: plural(nOther, "other known entity", "other known entities") }), other, "rest"));
    lines.push(el("li", { class: "total" }, [el("span", { text: "All" }), el("span", { text: "100.0\u00a0%" })]));
    panel.append(el("ul", { class: "shares", id: "shares" }, lines));
  }
}

// Four digits are often a year, so only longer numbers are grouped.
const cellText = (cell) => (typeof cell === "number" ? cell.toLocaleString("en-US", { maximumFractionDigits: 4, useGrouping: Math.abs(cell) >= 10000 }) : String(cell ?? ""));

// A share in thousandths; its bar is drawn to 100 %.
function shareLine(label, share, kind) {
  const bar = el("i");
  bar.style.width = `${Math.max(0, Math.min(100, share / 10))}%`;
  return el("li", { class: kind }, [label, el("span", { class: "share", text: percent(share) }), el("span", { class: "track", "aria-hidden": "true" }, bar)]);
}
