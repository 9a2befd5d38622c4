"use strict";
// How vecfill compares with other methods on hidden known vectors: means, or differences from vecfill.
const MEASURE_NAMES = {
  centred_cosine: ["Centred cosine", "the cosine with the hidden truth after the mean of the known vectors is subtracted; the mean itself has 0"],
  mrr: ["Reciprocal rank", "one over the rank of the truth among all known vectors sorted by nearness; 1 is always first"],
  hits_at_10: ["Hits at 10", "how often the truth is among the ten nearest known vectors"],
};
const signed = (value, digits = 3) => `${value > 0 ? "+" : ""}${value.toFixed(digits)}`.replace("-", "−");

function niceTicks(low, high) {
  const step = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1].find((each) => (high - low) / each <= 6) || 1;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9; k += 1) ticks.push(Number((k * step).toFixed(4)));
  return ticks;
}

function drawComparison(card, heldout) {
  if (!heldout) {
    card.append(el("h3", { text: "Against other methods" }), el("p", { class: "quiet", text:
      "Not measured in this run. In a shell, add --evaluate to the command; in Python, pass evaluation=vecfill.evaluate(...) to write_report." }));
    return;
  }
  const state = { measure: "centred_cosine", gap: false };
  const measures = el("div", { class: "group", role: "group", "aria-label": "Measure" });
  const views = el("div", { class: "group", role: "group", "aria-label": "What is drawn" });
  const about = el("p", { class: "quiet" }), holder = el("div");
  const draw = () => {
    for (const button of measures.children) button.setAttribute("aria-pressed", String(button.dataset.value === state.measure));
    for (const button of views.children) button.setAttribute("aria-pressed", String(button.dataset.value === String(state.gap)));
    const [name, what] = MEASURE_NAMES[state.measure];
    about.textContent = state.gap
      ? `${name} of each method minus that of vecfill, on the same hidden vectors. Lines are 95 % intervals; a method whose line crosses 0 cannot be told from vecfill.`
      : `${name} is ${what}. Lines are 95 % intervals. Every method chose its setting without the hidden vectors, which is stricter than the table above.`;
    holder.replaceChildren(comparisonChart(heldout.methods, state.measure, state.gap));
  };
  const button = (label, value, change) => el("button", { type: "button", text: label, "data-value": value, on: { click: () => { change(); draw(); } } });
  for (const measure of Object.keys(MEASURE_NAMES)) measures.append(button(MEASURE_NAMES[measure][0], measure, () => { state.measure = measure; }));
  views.append(button("Values", "false", () => { state.gap = false; }), button("Difference from vecfill", "true", () => { state.gap = true; }));
  card.append(
    el("div", { class: "bar" }, [el("h3", { text: "Against other methods" }), el("div", { class: "bar tight" }, [measures, views])]),
    about, holder, comparisonTable(heldout),
  );
  draw();
}

function comparisonChart(methods, measure, isGap) {
  const values = (row) => (isGap ? row.gap[measure] : row[measure]);
  const shown = methods.filter((row) => !isGap || row.name !== "auto").sort((a, b) => values(b)[0] - values(a)[0]);
  const narrow = window.innerWidth < 620;
  const width = narrow ? 420 : 1080, left = narrow ? 8 : 250, right = narrow ? 60 : 70;
  const step = narrow ? 44 : 32;
  const height = shown.length * step + 50;
  // A difference from the mean of all vectors says nothing about close methods: it may leave the chart.
  const close = isGap ? shown.filter((row) => row.name !== "mean") : shown;
  const ends = (close.length ? close : shown).flatMap((row) => values(row).slice(1));
  const low = Math.min(0, ...ends) * 1.06, high = Math.max(isGap ? 0.005 : 0.05, ...ends) * 1.06;
  const x = (value) => left + ((Math.min(high, Math.max(low, value)) - low) / (high - low)) * (width - left - right);
  const text = (value) => (isGap ? signed(value) : value.toFixed(3).replace("-", "−"));
  const figure = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label":
    `${MEASURE_NAMES[measure][0]}${isGap ? ", difference from vecfill" : ""}: ` + shown.map((row) => `${row.label} ${text(values(row)[0])}`).join("; ") });
  for (const tick of niceTicks(low, high)) {
    figure.append(svg("line", { class: isGap && tick === 0 ? "zero" : "axis", x1: x(tick), x2: x(tick), y1: 0, y2: height - 44 }));
    figure.append(svg("text", { x: x(tick), y: height - 28, "text-anchor": "middle" }, isGap && tick ? signed(tick, 2) : String(tick)));
  }
  figure.append(svg("text", { class: "axis-title", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" },
    MEASURE_NAMES[measure][0] + (isGap ? ", difference from vecfill" : "")));
  shown.forEach((row, place) => {
    const ours = row.name === "auto" ? "ours" : "mark", strong = row.name === "auto" ? "strong" : "";
    const y = place * step + (narrow ? 32 : 18);
    const [mean, from, to] = values(row);
    figure.append(svg("text", narrow ? { class: strong, x: left, y: y - 14 } : { class: strong, x: left - 16, y: y + 4, "text-anchor": "end" }, row.label));
    figure.append(svg("line", { class: ours, x1: x(from), x2: x(to), y1: y, y2: y, "stroke-width": 3, "stroke-linecap": "round", "stroke-opacity": 0.45 }));
    figure.append(svg("circle", { class: ours, cx: x(mean), cy: y, r: 5.5, stroke: "none" }));
    figure.append(svg("text", { class: strong, x: width, y: y + 4, "text-anchor": "end" }, text(mean)));
  });
  return figure;
}

function comparisonTable(heldout) {
  const names = ["Method", ...Object.values(MEASURE_NAMES).map((each) => each[0])];
  const number = (v) => v.toFixed(3).replace("-", "−");
  const body = heldout.methods.map((row) => el("tr", {}, [
    el("td", { text: row.label }),
    ...Object.keys(MEASURE_NAMES).map((measure) => {
      const [mean, low, high] = row[measure];
      return el("td", { text: `${number(mean)} (${number(low)} to ${number(high)})` });
    }),
  ]));
  const how = heldout.hide === "rarest" ? "the rarest ones, as blocks" : `in ${heldout.folds} folds`;
  return el("details", {}, [
    el("summary", { text: "As a table, with 95 % intervals" }),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Methods as a table" },
      el("table", {}, [el("thead", {}, el("tr", {}, names.map((text) => el("th", { scope: "col", text })))), el("tbody", {}, body)])),
    el("p", { class: "quiet", text: `${count(heldout.n_hidden)} known entities were hidden, ${how}. Every method was tuned on the rest.` }),
  ]);
}
