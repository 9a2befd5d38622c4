"use strict";
(function start() {
  const data = JSON.parse(byId("data").textContent);
  const { known, entities } = data;
  const total = entities.name.length;
  const hasConfidence = Boolean(entities.confidence);

  document.title = `${data.title} · vecfill`;
  byId("title").textContent = data.title;
  byId("version").textContent = data.version;

  // Light and dark: the system's wish until the button is pressed.
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement, themeButton = byId("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  let map = null;
  const showTheme = () => {
    themeButton.setAttribute("aria-pressed", String(isDark()));
    if (map) map.draw();
  };
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  dark.addEventListener("change", showTheme);

  headline();
  drawComparison(byId("comparison"), data.heldout);
  drawHistogram(byId("histogram"), data.confidence, total);
  drawReliability(byId("reliability"), data.confidence);
  const table = entityTable();
  drawMap();
  showDetail(-1);
  matchedNames();
  suspicions();
  facts();
  drawMade(byId("made"), data.how);
  showTheme();

  function headline() {
    byId("headline").textContent = total
      ? `${plural(total, "vector", "vectors")} imputed from ${count(data.n_known)} known`
      : "Nothing was imputed";
    byId("verdict").textContent = data.verdict.text;
    byId("verdict").classList.add(data.verdict.kind);
    const tile = (label, value, main) => byId("tiles").append(el("div", { class: main ? "main" : undefined }, [el("dt", { text: label }), el("dd", { text: value })]));
    const auto = data.heldout && data.heldout.methods.find((each) => each.name === "auto");
    const centred = auto ? auto.centred_cosine[0] : data.means && data.means.centred_cosine;
    const hits = auto ? auto.hits_at_10[0] : data.means && data.means.hits_at_10;
    tile("entities imputed", count(total), true);
    tile("entities known, unchanged", count(data.n_known));
    if (typeof centred === "number") tile("centred cosine of hidden vectors (the mean has 0)", centred.toFixed(2));
    if (typeof hits === "number") tile("of hidden vectors have their truth among the 10 nearest", `${Math.round(hits * 100)} %`);
    if (data.confidence) tile(`of hidden vectors reach their lower bound; ${Math.round(data.confidence.level * 100)} % is aimed at`, `${(data.confidence.coverage * 100).toFixed(1)} %`);
    if (data.n_abstained) tile("left out for low confidence", count(data.n_abstained));
  }

  function confidenceCell(row) {
    const value = entities.confidence[row];
    const bar = el("i");
    bar.style.width = `${Math.max(0, Math.min(100, value / 10))}%`;
    return [el("span", { class: "meter hide-small", "aria-hidden": "true" }, bar), fixed(value)];
  }

  function entityTable() {
    const columns = [{
      title: "Entity", value: (row) => entities.name[row], class: "entity",
      cell: (row) => nameNode(entities.name[row], "button", { type: "button", class: "name", "aria-label": short(entities.name[row]) + ", show what it is made of" }),
    }];
    if (hasConfidence) {
      columns.push({ title: "Confidence", class: "number", first: "descending", value: (row) => entities.confidence[row], cell: confidenceCell });
      columns.push({ title: "At least", class: "number hide-small", first: "descending", value: (row) => entities.lower[row], cell: (row) => fixed(entities.lower[row]) });
    }
    columns.push({ title: "Nearest known", class: "words", cell: (row) => nameNodes((entities.nearest[row] || []).slice(0, 3).map((k) => known[k])) });
    columns.push({ title: "Made of", class: "words hide-small", cell: (row) => madeOf(row) });
    const made = new PagedTable(byId("table"), {
      caption: "Imputed entities", columns, nRows: total, texts: (row) => entities.name[row],
      status: byId("table-status"), onPick: (row, byButton) => pick(row, { focus: byButton }),
    });
    if (hasConfidence && total) made.sort(1, "descending");
    let waiting = 0;
    byId("search").addEventListener("input", (event) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => made.filter(event.target.value), total > 20000 ? 200 : 0);
    });
    const bounds = [];
    if (entities.contributors.length < total) bounds.push(`Contributions are shown for the ${count(entities.contributors.length)} entities of highest confidence; run.explain(name) gives any other.`);
    if (entities.nearest.length < total) bounds.push(`Nearest known entities are shown for the first ${count(entities.nearest.length)}.`);
    if (bounds.length) byId("table-card").append(el("p", { class: "quiet gap", text: bounds.join(" ") }));
    return made;
  }

  function madeOf(row) {
    const list = entities.contributors[row];
    if (!list) return "";
    return list.slice(0, 3).flatMap((k, place) => [place ? ", " : "", nameNode(known[k]), ` ${Math.round(entities.shares[row][place] / 10)}\u00a0%`]);
  }

  function drawMap() {
    const card = byId("map-card");
    if (data.map.kind === "none" || !data.map.known.length) {
      card.remove();
      return;
    }
    const nPoints = data.map.known.length / 3 + data.map.imputed.length / 3;
    const about = data.map.kind === "given" ? "" : "two principal components of the known vectors";
    const all = data.n_known + total;
    byId("map-note").textContent = [about, nPoints < all ? `${count(nPoints)} of ${count(all)} entities` : ""].filter(Boolean).map((text) => `· ${text}`).join(" ");
    const canvas = byId("map");
    const aspect = Math.min(2.6, Math.max(1.2, data.map.width / Math.max(1, data.map.height)));
    canvas.style.aspectRatio = String(window.innerWidth < 600 ? Math.min(aspect, 1.8) : aspect);
    canvas.setAttribute("aria-label", `Map of ${count(data.map.known.length / 3)} known and ${count(data.map.imputed.length / 3)} imputed entities. The table below has all that it tells.`);
    map = new PointMap(canvas, byId("map-tip"), data.map, {
      confidence: entities.confidence,
      label: (kind, row) => (kind === "known" ? known[row] : `${entities.name[row]} (imputed)`),
      onPick: (row) => { table.reveal(row); byId("search").value = table.query; pick(row, {}); },
      linksOf: (row) => (entities.contributors[row] || []).map((k, place) => [k, entities.shares[row][place]]),
    });
    byId("zoom-in").addEventListener("click", () => map.scale(1.6));
    byId("zoom-out").addEventListener("click", () => map.scale(1 / 1.6));
    byId("zoom-reset").addEventListener("click", () => map.reset());
  }

  function pick(row, { focus }) {
    table.choose(row);
    if (map) map.choose(row);
    showDetail(row);
    const panel = byId("detail");
    if (focus) panel.focus({ preventScroll: true });
    if (window.innerWidth <= 900) panel.scrollIntoView({ block: "start" });
  }

  function close(row) {
    table.choose(-1);
    if (map) map.choose(-1);
    showDetail(-1);
    const back = byId("table").querySelector(`tr[data-row="${row}"] button`);
    if (back) back.focus();
  }

  function showDetail(row) {
    const panel = byId("detail");
    panel.replaceChildren();
    panel.onkeydown = row < 0 ? null : (event) => { if (event.key === "Escape") close(row); };
    if (row < 0) {
      panel.append(el("h3", { id: "detail-title", text: "What is it made of?" }), el("p", { class: "quiet", text: total
        ? "Choose an entity in the table or on the map to see the known entities its vector is a mix of, and those it is nearest to."
        : "Nothing was imputed, so there is nothing to explain." }));
      return;
    }
    const title = nameNode(entities.name[row], "h3", { id: "detail-title" });
    panel.append(el("div", { class: "detail-head" }, [title, el("button", { type: "button", text: "Close", on: { click: () => close(row) } })]));
    if (hasConfidence) {
      const level = Math.round(data.confidence.level * 100);
      panel.append(el("p", { class: "quiet", text: `Expected centred cosine ${fixed(entities.confidence[row])}. In ${level} % of cases the cosine with the truth is at least ${fixed(entities.lower[row])}.` }));
    }
    contributions(panel, row);
    const near = entities.nearest[row];
    if (near && near.length) {
      panel.append(el("h4", { text: "Nearest known vectors" }), el("ul", { class: "shares" }, near.map((k, place) =>
        el("li", {}, [nameNode(known[k], "span", { class: "name" }), el("span", { text: fixed(entities.cosine[row][place]) })]))));
    }
  }

  function contributions(panel, row) {
    panel.append(el("h4", { text: "Made of" }));
    const list = entities.contributors[row];
    if (!list) {
      panel.append(el("p", { class: "quiet", text: "Not worked out for this page; result.explain(name) in Python shows it." }));
      return;
    }
    const trend = entities.trend[row], offset = entities.offset[row];
    if (offset > 0) {
      panel.append(el("p", { class: "quiet", text: `${Math.round(offset / 10)} % is the offset of rare entities: where vectors as rare as this one lie as a whole.` }));
    }
    if (trend > 0) {
      panel.append(el("p", { class: "quiet", text: data.setting.residual_share === 0
        ? "This vector is the linear trend of the domain alone; below are the known entities that its neighbours would mix."
        : `${Math.round(trend / 10)} % linear trend of the domain. The rest comes from these known entities:` }));
    }
    const shares = entities.shares[row];
    const other = 1000 - shares.reduce((sum, share) => sum + share, 0);
    const most = Math.max(...shares, other, 1);
    const line = (label, share, kind) => {
      const bar = el("i");
      bar.style.width = `${(100 * share) / most}%`;
      return el("li", { class: kind }, [label, el("span", { class: "share", text: percent(share) }), el("span", { class: "track", "aria-hidden": "true" }, bar)]);
    };
    const lines = list.map((k, place) => line(nameNode(known[k], "span", { class: "name" }), shares[place]));
    const nOther = data.n_known - list.length;
    if (other > 0) lines.push(line(el("span", { class: "name", text: `${plural(nOther, "other known entity", "other known entities")}` }), other, "rest"));
    lines.push(el("li", { class: "total" }, [el("span", { text: "All" }), el("span", { text: "100.0\u00a0%" })]));
    panel.append(el("ul", { class: "shares", id: "shares" }, lines));
  }

  function matchedNames() {
    const { counts, rows, n_listed: nListed, n_words: nWords, level } = data.matches;
    const card = byId("matches");
    const words = { exact: "exactly", case: "ignoring case", loose: "loosely (separators, accents, suffixes)", alias: "by an alias", excluded: "excluded", none: "no word" };
    card.append(el("p", { text: `Matched at level “${level}” against ${plural(nWords, "word", "words")}.` }));
    card.append(el("dl", { class: "facts gap" }, Object.entries(counts).flatMap(([how, n]) => [el("dt", { text: words[how] || how }), el("dd", { text: count(n) })])));
    const holder = el("div");
    const tools = el("div", { class: "field gap tools" }, [el("label", { for: "match-search", text: "Search" })]);
    const input = el("input", { id: "match-search", type: "search", autocomplete: "off" });
    tools.append(input);
    card.append(el("details", {}, [el("summary", { text: `Every match, the loosest first${rows.length < nListed ? ` (the first ${count(rows.length)} of ${count(nListed)})` : ""}` }), tools, holder]));
    const list = new PagedTable(holder, {
      caption: "Matches", nRows: rows.length, texts: (row) => `${rows[row][0]} ${rows[row][1]}`, pageRows: 25,
      columns: [
        { title: "Entity", value: (row) => rows[row][0], cell: (row) => nameNode(rows[row][0]) },
        { title: "Word", value: (row) => rows[row][1], cell: (row) => nameNode(rows[row][1]) },
        { title: "How", value: (row) => rows[row][2], cell: (row) => rows[row][2] },
      ],
    });
    input.addEventListener("input", () => list.filter(input.value));
  }

  function suspicions() {
    const card = byId("suspicions"), rows = data.suspicious;
    if (!rows.length) {
      card.append(el("p", { class: "quiet", text: "None was found: no known vector contradicts what its neighbours make of it." }));
      return;
    }
    card.append(el("p", { class: "quiet", text: "Known entities whose own vector points away from what their neighbours make of them: often a word with another meaning, or a wrong match. If one is, exclude it or give an alias, and run again." }));
    const holder = el("div");
    card.append(holder);
    new PagedTable(holder, {
      caption: "Suspicious anchors", nRows: rows.length, texts: (row) => rows[row][0], pageRows: 25,
      columns: [
        { title: "Entity", value: (row) => rows[row][0], cell: (row) => nameNode(rows[row][0]) },
        { title: "Word", value: (row) => rows[row][1], cell: (row) => nameNode(rows[row][1]) },
        { title: "Centred cosine", class: "number", value: (row) => rows[row][2], cell: (row) => fixed(rows[row][2] * 1000) },
      ],
    });
  }

  function facts() {
    const card = byId("facts");
    const p = data.heldout ? data.heldout.p_value : null;
    const pairs = [
      ["Method", data.setting_text], ["Domain", data.domain], ["Dimensions", String(data.n_dims)],
      ["Residual of the linear system", data.residual.toExponential(1)],
      ["Chance alone would do as well", p === null ? "not measured here" : p < 1e-12 ? "p < 1e-12" : `p = ${p.toPrecision(2)}`],
    ];
    for (const each of data.proofs) {
      const speaks = each.speaks && data.proofs.length > 1 ? " (speaks for the unknown entities)" : "";
      pairs.push([`Known entities ${each.name}${speaks}`, `${count(each.n_hidden)} hidden; centred cosine ${each.centred_cosine.toFixed(3)}, ${(each.hits_at_10 * 100).toFixed(1)} % among the ten nearest, ${each.norm_ratio.toFixed(2)} of the true length`]);
    }
    for (const text of data.strata) pairs.push(["Kind of entity", text]);
    card.append(el("dl", { class: "facts" }, pairs.flatMap(([label, value]) => [el("dt", { text: label }), el("dd", { text: value })])));
    if (data.notes.length) {
      card.append(el("h3", { class: "gap", text: "Notes" }), el("ul", { class: "notes" }, data.notes.map((text) => el("li", { text: short(text) === text ? text : text.slice(0, 600) }))));
    }
    if (data.n_abstained) {
      const holder = el("div");
      card.append(el("h3", { class: "gap", text: `${count(data.n_abstained)} left out for low confidence` }), holder);
      new PagedTable(holder, {
        caption: "Left out", nRows: data.abstained.length, texts: (row) => data.abstained[row], pageRows: 10,
        columns: [{ title: "Entity", value: (row) => data.abstained[row], cell: (row) => nameNode(data.abstained[row]) }],
      });
    }
    card.append(el("details", {}, [el("summary", { text: "Method as JSON" }), el("pre", { text: JSON.stringify(data.setting, null, 2) })]));
  }
})();
