"use strict";
// Three charts about confidence: how it is spread, whether it is right, and what a threshold buys.
const SIDE = 400, LEFT = 58, BOTTOM = 50, TOP = 10, RIGHT = 12;
const across = (low, high) => (value) => LEFT + ((value - low) / (high - low)) * (SIDE - LEFT - RIGHT);
const upwards = (low, high, height = SIDE) => (value) => height - BOTTOM - ((value - low) / (high - low)) * (height - BOTTOM - TOP);

function frame(label, { xTitle, yTitle, x, y, xTicks, yTicks, height = SIDE }) {
  const figure = svg("svg", { viewBox: `0 0 ${SIDE} ${height}`, role: "img", "aria-label": label });
  for (const [value, text] of yTicks) {
    figure.append(svg("line", { class: "axis", x1: LEFT, x2: SIDE - RIGHT, y1: y(value), y2: y(value) }));
    figure.append(svg("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, text));
  }
  for (const [value, text] of xTicks) figure.append(svg("text", { x: x(value), y: height - BOTTOM + 20, "text-anchor": "middle" }, text));
  figure.append(svg("text", { class: "axis-title", x: (LEFT + SIDE - RIGHT) / 2, y: height - 8, "text-anchor": "middle" }, xTitle));
  const middle = (TOP + height - BOTTOM) / 2;
  figure.append(svg("text", { class: "axis-title", x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, yTitle));
  return figure;
}

const ticked = (ticks, text = String) => ticks.map((each) => [each, text(each)]);

function drawHistogram(card, confidence, total, offset) {
  card.append(el("h3", { text: "How confident are the imputed vectors?" }));
  if (!confidence || !total) {
    card.append(el("p", { class: "quiet", text: total ? "Too few entities are known to learn a confidence." : "Nothing was imputed." }));
    return;
  }
  card.append(el("p", { class: "quiet", text: "Confidence is the centred cosine to expect between an imputed vector and the true one, less what one vector for all entities would reach. It is learnt from hidden known vectors." }));
  if (offset && typeof offset.alone === "number") card.append(el("p", { class: "quiet", id: "offset-alone", text:
    `Rare entities get an offset, which does not raise confidence. On the rarest known entities, hidden, the offset alone has a centred cosine of ${figureOf(offset.alone)}, the new vectors have ${figureOf(offset.offset)}, and ${figureOf(offset.none)} without offset.` }));
  const most = Math.max(...confidence.counts, 1);
  // The axis covers what there is: confidence seldom fills the whole scale.
  const filled = confidence.counts.flatMap((n, place) => (n ? [place] : []));
  const low = confidence.edges[filled[0]], high = confidence.edges[filled[filled.length - 1] + 1];
  const x = across(low, high), y = upwards(0, most);
  const middle = Math.round(most / 2);
  const figure = frame("Histogram of confidence: " + confidence.counts.map((n, i) => (n ? `${confidence.edges[i]} to ${confidence.edges[i + 1]}: ${n}` : "")).filter(Boolean).join("; "),
    { xTitle: "Confidence", yTitle: "Entities", x, y, xTicks: ticked(niceTicks(low, high)), yTicks: ticked([...new Set([0, middle, most])], count) });
  confidence.counts.forEach((n, place) => {
    const from = x(confidence.edges[place]), to = x(confidence.edges[place + 1]);
    if (n) figure.append(svg("rect", { class: "ours", stroke: "none", x: from + 1, y: y(n), width: to - from - 2, height: Math.max(1, SIDE - BOTTOM - y(n)), rx: 2 }));
  });
  card.append(figure);
}

function drawReliability(card, confidence) {
  card.append(el("h3", { text: "Is the confidence right?" }));
  if (!confidence || !confidence.bins.length) {
    card.append(el("p", { class: "quiet", text: "Too few entities are known to check it." }));
    return;
  }
  card.append(el("p", { class: "quiet", text: `${count(confidence.n_hidden)} hidden known vectors, in groups of equal size. Points on the dashed line came out as expected.` }));
  const bins = confidence.bins;
  const low = Math.min(0, ...bins.map((b) => b.low), ...bins.map((b) => b.expected));
  const high = Math.min(1.02, Math.max(...bins.map((b) => b.high), ...bins.map((b) => b.expected)) * 1.1 + 0.02);
  // One scale for both axes, in a square: a slope of one looks like a slope of one.
  const side = SIDE - LEFT - RIGHT, height = side + TOP + BOTTOM;
  const x = across(low, high), y = upwards(low, high, height), ticks = ticked(niceTicks(low, high));
  const figure = frame("Expected and actual centred cosine: " + bins.map((b) => `expected ${b.expected.toFixed(2)}, actual ${b.actual.toFixed(2)}`).join("; "),
    { xTitle: "Expected centred cosine", yTitle: "Actual centred cosine", x, y, xTicks: ticks, yTicks: ticks, height });
  figure.setAttribute("id", "reliability-chart");
  figure.append(svg("line", { class: "dash", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }));
  for (const bin of bins) {
    figure.append(svg("line", { class: "ours", x1: x(bin.expected), x2: x(bin.expected), y1: y(Math.max(low, bin.low)), y2: y(Math.min(high, bin.high)), "stroke-width": 3, "stroke-opacity": 0.4, "stroke-linecap": "round" }));
    figure.append(svg("circle", { class: "ours", stroke: "none", cx: x(bin.expected), cy: y(bin.actual), r: 5 }));
  }
  card.append(figure, el("p", { class: "quiet gap", text: heldByGroup(bins, confidence.level) }));
}

function heldByGroup(bins, level) {
  const shares = bins.map((bin) => Math.round(bin.coverage * 100));
  const range = `between ${Math.min(...shares)} % and ${Math.max(...shares)} %`;
  return `Lower bounds (${Math.round(level * 100)} % is the aim) held for ${shares[0]} % of the group of lowest confidence, ${shares[shares.length - 1]} % of the highest, and ${range} of every group.`;
}

function drawCurve(card, confidence) {
  card.append(el("h3", { text: "Which threshold should I use?" }));
  if (!confidence || !confidence.curve.length) {
    card.append(el("p", { class: "quiet", text: "Too few entities are known to compare thresholds." }));
    return;
  }
  const points = confidence.curve, all = points[points.length - 1], half = points.find((each) => each.share >= 0.5) || all;
  card.append(el("p", { class: "quiet", text: `Keeping the half with the higher confidence (${half.threshold.toFixed(2)} or more) raises the centred cosine of hidden vectors from ${all.centred_cosine.toFixed(2)} to ${half.centred_cosine.toFixed(2)}.` }));
  const values = points.map((each) => each.centred_cosine);
  const low = Math.min(0, ...values), high = Math.min(1.02, Math.max(...values, 0.05) * 1.08);
  const x = across(0, 1), y = upwards(low, high);
  const figure = frame("Share kept and mean centred cosine: " + points.map((p) => `${Math.round(p.share * 100)} %: ${p.centred_cosine.toFixed(2)}`).join("; "),
    { xTitle: "Share of entities kept, most confident first", yTitle: "Mean centred cosine of those kept", x, y,
      xTicks: ticked([0, 0.25, 0.5, 0.75, 1], (v) => `${v * 100} %`), yTicks: ticked(niceTicks(low, high)) });
  figure.append(svg("polyline", { class: "line", points: points.map((p) => `${x(p.share)},${y(p.centred_cosine)}`).join(" ") }));
  for (const point of points) {
    const dot = svg("circle", { class: "ours", stroke: "none", cx: x(point.share), cy: y(point.centred_cosine), r: 4 });
    dot.append(svg("title", {}, `Confidence ${point.threshold.toFixed(2)} or more keeps ${Math.round(point.share * 100)} % with a centred cosine of ${point.centred_cosine.toFixed(2)}`));
    figure.append(dot);
  }
  card.append(figure, el("p", { class: "quiet gap" }, ["To leave the others out, pass the threshold as ", el("span", { class: "whole", text: "min_confidence=" }),
    " (in a shell, ", el("span", { class: "whole", text: "--min-confidence" }), ")."]));
}
