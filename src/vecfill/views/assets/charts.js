"use strict";
const MEASURE_NAMES = {
  centred_cosine: ["Centred cosine", "cosine with the hidden truth after the mean of the known vectors is subtracted; the mean itself has 0"],
  mrr: ["Reciprocal rank", "where the truth stands among all known vectors sorted by nearness; 1 is first, always"],
  hits_at_10: ["Hits at 10", "how often the truth is among the ten nearest known vectors"],
};
const METHOD_NAMES = {
  auto: "vecfill, chosen on the data", paper: "vecfill, as in the paper", mean: "mean of known vectors",
  knn: "k nearest, plain mean", knn_distance: "k nearest, by distance", ridge: "ridge regression",
  omp: "matching pursuit (tokensurgeon)", sparsemax: "sparsemax (FOCUS)",
};

function niceTicks(low, high) {
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1].find((each) => (high - low) / each <= 6) || 1;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9; k += 1) ticks.push(Number((k * step).toFixed(4)));
  return ticks;
}

function drawComparison(card, heldout) {
  if (!heldout) {
    card.append(el("h3", { text: "Against other methods" }), el("p", { class: "quiet", text:
      "Not measured in this run. vecfill.evaluate compares hidden known vectors under every method; pass its result as evaluation=." }));
    return;
  }
  const buttons = el("div", { class: "group", role: "group", "aria-label": "Measure" });
  const about = el("p", { class: "quiet" });
  const holder = el("div");
  const draw = (measure) => {
    for (const button of buttons.children) button.setAttribute("aria-pressed", String(button.dataset.measure === measure));
    about.textContent = `${MEASURE_NAMES[measure][0]}: ${MEASURE_NAMES[measure][1]}. Bars are 95 % intervals.`;
    holder.replaceChildren(comparisonChart(heldout.methods, measure));
  };
  for (const measure of Object.keys(MEASURE_NAMES)) {
    const button = el("button", { type: "button", text: MEASURE_NAMES[measure][0], "data-measure": measure, on: { click: () => draw(measure) } });
    buttons.append(button);
  }
  card.append(
    el("div", { class: "bar" }, [el("h3", { text: "Against other methods, on hidden known vectors" }), buttons]),
    about, holder, comparisonTable(heldout),
  );
  draw("centred_cosine");
}

function comparisonChart(methods, measure) {
  const rows = [...methods].sort((a, b) => b[measure][0] - a[measure][0]);
  const narrow = window.innerWidth < 620;
  const width = narrow ? 420 : 1080, left = narrow ? 8 : 250, right = narrow ? 60 : 70;
  const step = narrow ? 44 : 32;
  const height = rows.length * step + 30;
  const low = Math.min(0, ...rows.map((row) => row[measure][1]));
  const high = Math.max(0.05, ...rows.map((row) => row[measure][2])) * 1.04;
  const x = (value) => left + ((value - low) / (high - low)) * (width - left - right);
  const figure = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label":
    `${MEASURE_NAMES[measure][0]}: ` + rows.map((row) => `${METHOD_NAMES[row.name] || row.name} ${row[measure][0].toFixed(3)}`).join("; ") });
  for (const tick of niceTicks(low, high)) {
    figure.append(svg("line", { class: "axis", x1: x(tick), x2: x(tick), y1: 0, y2: height - 24 }));
    figure.append(svg("text", { x: x(tick), y: height - 6, "text-anchor": "middle" }, String(tick)));
  }
  rows.forEach((row, place) => {
    const ours = row.name === "auto" ? "ours" : "mark";
    const y = place * step + (narrow ? 32 : 18);
    const [mean, from, to] = row[measure];
    const strong = row.name === "auto" ? "strong" : "";
    figure.append(svg("text", narrow ? { class: strong, x: left, y: y - 14 } : { class: strong, x: left - 16, y: y + 4, "text-anchor": "end" },
      METHOD_NAMES[row.name] || row.name));
    figure.append(svg("line", { class: ours, x1: x(from), x2: x(to), y1: y, y2: y, "stroke-width": 3, "stroke-linecap": "round", "stroke-opacity": 0.45 }));
    figure.append(svg("circle", { class: ours, cx: x(mean), cy: y, r: 5.5, stroke: "none" }));
    figure.append(svg("text", { class: strong, x: width, y: y + 4, "text-anchor": "end" }, mean.toFixed(3).replace("-", "−")));
  });
  return figure;
}

function comparisonTable(heldout) {
  const head = el("tr", {}, ["Method", ...Object.values(MEASURE_NAMES).map((each) => each[0])].map((text) => el("th", { scope: "col", text })));
  const body = heldout.methods.map((row) => el("tr", {}, [
    el("td", { text: METHOD_NAMES[row.name] || row.name }),
    ...Object.keys(MEASURE_NAMES).map((measure) => el("td", { text: row[measure].map((v) => v.toFixed(3).replace("-", "−")).join("  ") })),
  ]));
  return el("details", {}, [
    el("summary", { text: "As a table (mean, and its 95 % interval)" }),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Methods as a table" },
      el("table", {}, [el("thead", {}, head), el("tbody", {}, body)])),
    el("p", { class: "quiet", text: `${count(heldout.n_hidden)} known entities were hidden, in ${heldout.folds} folds.` }),
  ]);
}

function drawHistogram(card, confidence, total) {
  card.append(el("h3", { text: "Confidence of the imputed vectors" }));
  if (!confidence || !total) {
    card.append(el("p", { class: "quiet", text: total ? "Too few entities are known to learn a confidence." : "Nothing was imputed." }));
    return;
  }
  card.append(el("p", { class: "quiet", text: "Confidence is the centred cosine with the truth to expect." }));
  const width = 520, height = 250, left = 44, bottom = 34;
  const most = Math.max(...confidence.counts, 1);
  const x = (value) => left + value * (width - left - 8);
  const y = (value) => height - bottom - (value / most) * (height - bottom - 14);
  const figure = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Histogram of confidence: " +
    confidence.counts.map((n, i) => (n ? `${confidence.edges[i]} to ${confidence.edges[i + 1]}: ${n}` : "")).filter(Boolean).join("; ") });
  for (const share of [0, 0.5, 1]) {
    const value = Math.round(most * share);
    figure.append(svg("line", { class: "axis", x1: left, x2: width - 8, y1: y(value), y2: y(value) }));
    figure.append(svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, count(value)));
  }
  confidence.counts.forEach((n, place) => {
    const from = x(confidence.edges[place]), to = x(confidence.edges[place + 1]);
    if (n) figure.append(svg("rect", { class: "ours", stroke: "none", x: from + 1, y: y(n), width: to - from - 2, height: Math.max(1, height - bottom - y(n)), rx: 2 }));
  });
  for (const tick of [0, 0.2, 0.4, 0.6, 0.8, 1]) figure.append(svg("text", { x: x(tick), y: height - 12, "text-anchor": "middle" }, String(tick)));
  card.append(figure);
}

function drawReliability(card, confidence) {
  card.append(el("h3", { text: "Is the confidence right?" }));
  if (!confidence || !confidence.bins.length) {
    card.append(el("p", { class: "quiet", text: "Too few entities are known to check it." }));
    return;
  }
  card.append(el("p", { class: "quiet", text: "Hidden known vectors: what was expected of them (across), what came out (up). On the line, it is right." }));
  const bins = confidence.bins;
  const low = Math.min(0, ...bins.map((b) => b.low), ...bins.map((b) => b.expected));
  const high = Math.min(1.02, Math.max(...bins.map((b) => b.high), ...bins.map((b) => b.expected)) * 1.1 + 0.02);
  const width = 520, height = 250, left = 44, bottom = 34;
  const x = (value) => left + ((value - low) / (high - low)) * (width - left - 12);
  const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - bottom - 12);
  const figure = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Expected and actual centred cosine: " +
    bins.map((b) => `expected ${b.expected.toFixed(2)}, came out ${b.actual.toFixed(2)}`).join("; ") });
  for (const tick of niceTicks(low, high)) {
    figure.append(svg("line", { class: "axis", x1: left, x2: width - 12, y1: y(tick), y2: y(tick) }));
    figure.append(svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, String(tick)));
    figure.append(svg("text", { x: x(tick), y: height - 12, "text-anchor": "middle" }, String(tick)));
  }
  figure.append(svg("line", { class: "dash", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }));
  for (const bin of bins) {
    figure.append(svg("line", { class: "ours", x1: x(bin.expected), x2: x(bin.expected), y1: y(bin.low), y2: y(bin.high), "stroke-width": 3, "stroke-opacity": 0.4, "stroke-linecap": "round" }));
    figure.append(svg("circle", { class: "ours", stroke: "none", cx: x(bin.expected), cy: y(bin.actual), r: 5 }));
  }
  card.append(figure);
}
