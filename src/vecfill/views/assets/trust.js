"use strict";
// Tables of proofs, sources and kinds of entities.
const figureOf = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−"));
const share = (value) => (value === null || value === undefined ? "–" : `${Math.round(value * 100)}\u00a0%`);

function plainTable(label, heads, rows) {
  const cells = (row) => row.map((cell, at) => el("td", { class: heads[at][1], "data-label": heads[at][0] }, cell));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, el("table", { class: "stack", role: "table" }, [
    el("thead", {}, el("tr", {}, heads.map(([text, kind]) => el("th", { scope: "col", class: kind, text })))),
    el("tbody", {}, rows.map((row) => el("tr", {}, cells(row)))),
  ]));
}

// A bar to 100 %, so that lengths can be compared anywhere on the page.
function meter(value, text) {
  const bar = el("i");
  bar.style.width = `${Math.max(0, Math.min(100, 100 * (value || 0)))}%`;
  return [el("span", { class: "meter", "aria-hidden": "true" }, bar), text];
}

function drawProofs(card, proofs, heldout) {
  if (!proofs.length) {
    card.append(el("p", { class: "quiet", text: "Too few entities are known to hide some of them and compare." }));
    return;
  }
  const several = proofs.length > 1;
  card.append(el("p", { text: several
    ? "The first row matters most, because the unknown entities are like those that it hides."
    : "Known vectors were hidden, imputed from the rest, and compared with their true values." }));
  const rows = proofs.map((each) => [
    [each.name, several && each.speaks ? el("span", { class: "badge", text: "like the unknown entities" }) : ""],
    count(each.n_hidden), figureOf(each.centred_cosine), meter(each.hits_at_10, share(each.hits_at_10)), figureOf(each.norm_ratio),
  ]);
  card.append(plainTable("Proofs", [["Which were hidden", "wide"], ["Hidden", "number"], ["Centred cosine", "number"], ["Among the ten nearest", "number"], ["Length / true length", "number"]], rows));
  const p = heldout ? heldout.p_value : null;
  if (p !== null) card.append(el("p", { class: "quiet gap", text: `Probability that chance alone does as well: ${p < 1e-12 ? "below 1e-12" : p.toPrecision(2)}.` }));
}

function drawSources(section, sources) {
  if (!sources.length) {
    section.remove();
    return;
  }
  const card = byId("source-table");
  const best = Math.max(1, ...sources.map((each) => each.weight));
  card.append(el("p", { class: "quiet", text: "The weight is the mean over the unknown entities that a source describes. The scores are those of each source alone, on hidden known vectors." }));
  const rows = sources.map((each) => [
    nameNode(each.name),
    each.is_kept ? meter(each.weight / best, figureOf(each.weight)) : el("span", { class: "badge warn", text: "dropped" }),
    figureOf(each.centred_cosine), share(each.hits_at_10), count(each.n_known), count(each.n_unknown),
    el("span", { class: "quiet", text: each.is_kept ? each.method || each.why : each.why }),
  ]);
  card.append(plainTable("Sources", [["Source", "wide"], ["Weight", "number"], ["Centred cosine alone", "number"], ["Among the ten nearest", "number"], ["Known", "number"], ["Unknown", "number"], ["Method, or why it was dropped", "words"]], rows));
}

function drawKinds(section, strata, level) {
  if (!strata.length) {
    section.remove();
    return;
  }
  const card = byId("kind-table");
  const named = (list) => list.map((each) => each.name).join(" and ");
  const unproved = strata.filter((each) => !each.is_proved), failed = strata.filter((each) => each.falls_short);
  const said = [];
  if (unproved.length) said.push(`Nothing can be proved about ${named(unproved)}, because too few known entities are like that. Their lower bounds are cautious.`);
  if (failed.length) said.push(`For ${named(failed)}, the lower bounds of hidden entities held too rarely, so those of the unknown ones were lowered.`);
  card.append(el("p", { text: said.join(" ") || "Enough known entities of each kind were hidden, and their lower bounds held." }));
  const rows = strata.map((each) => [
    [each.name[0].toUpperCase() + each.name.slice(1), each.is_proved ? (each.falls_short ? el("span", { class: "badge warn", text: "bounds lowered" }) : "") : el("span", { class: "badge warn", text: "cannot be proved" })],
    count(each.n_unknown), count(each.n_known), count(each.n_hidden), figureOf(each.is_proved ? each.centred_cosine : null),
    each.is_proved ? meter(each.coverage, share(each.coverage)) : "–",
  ]);
  const held = level ? `Lower bounds held (${Math.round(level * 100)} % is the aim)` : "Lower bounds held";
  card.append(plainTable("Kinds of entities", [["Kind", "wide"], ["Unknown", "number"], ["Known", "number"], ["Hidden", "number"], ["Centred cosine", "number"], [held, "number"]], rows));
}
