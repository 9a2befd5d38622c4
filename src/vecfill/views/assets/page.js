"use strict";
(() => {
  const data = JSON.parse(byId("data").textContent);
  const { known, entities } = data;
  const total = entities.name.length;
  const hasConfidence = Boolean(entities.confidence);
  const HASH = "#entity=", buttons = new Map();

  document.title = `${data.title} · vecfill`;
  byId("title").textContent = data.title;
  byId("version").textContent = data.version;
  if (data.map.coast) byId("credit").textContent = "Coastline: Natural Earth, public domain.";

  // Light and dark: the system's wish until the button is pressed.
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement, themeButton = byId("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  let map = null, hidesHint = 0;
  const showTheme = () => {
    themeButton.setAttribute("aria-pressed", String(isDark()));
    if (map) map.redraw();
  };
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  dark.addEventListener("change", showTheme);

  headline();
  drawLooks(byId("vectors"), data.sanity);
  drawProofs(byId("proofs"), data.proofs, data.heldout);
  drawComparison(byId("comparison"), data.heldout);
  drawSources(byId("sources"), data.sources);
  drawKinds(byId("kinds"), data.strata, data.confidence && data.confidence.level);
  drawHistogram(byId("histogram"), data.confidence, total, data.offset_scores);
  drawReliability(byId("reliability"), data.confidence);
  drawCurve(byId("curve"), data.confidence);
  const detail = new Detail(byId("detail"), data, { onClose: close });
  const table = entityTable();
  drawMap();
  matchedNames();
  suspicions();
  facts();
  drawMade(byId("made"), data.how);
  sectionChoice();
  showTheme();
  start();

  function headline() {
    byId("headline").textContent = data.verdict.headline;
    byId("verdict").textContent = data.verdict.text;
    byId("verdict").classList.add(data.verdict.kind);
    byId("numbers").textContent = total ? `${plural(total, "vector", "vectors")} imputed from ${count(data.n_known)} known ones, ${data.setting_short}.` : "";
    const tile = (label, value, main) => byId("tiles").append(el("div", { class: main ? "main" : undefined }, [el("dt", { text: label }), el("dd", { text: value })]));
    const auto = data.heldout && data.heldout.methods.find((each) => each.name === "auto");
    const centred = auto ? auto.centred_cosine[0] : data.means && data.means.centred_cosine;
    const hits = auto ? auto.hits_at_10[0] : data.means && data.means.hits_at_10;
    tile("entities imputed", count(total), true);
    tile("entities known, unchanged", count(data.n_known));
    if (typeof centred === "number") tile("centred cosine of hidden vectors (the mean has 0)", centred.toFixed(2));
    if (typeof hits === "number") tile("of hidden vectors are among the ten nearest to their imputation", `${Math.round(hits * 100)} %`);
    if (data.confidence) tile(`of hidden vectors reach their lower bound; ${Math.round(data.confidence.level * 100)} % is the aim`, `${(data.confidence.coverage * 100).toFixed(1)} %`);
    if (data.n_abstained) tile("left out for low confidence", count(data.n_abstained));
  }

  // A link to every section, and a menu that shows some of them: a short page to print or to send.
  function sectionChoice() {
    for (const section of document.querySelectorAll("section[data-nav]")) {
      const link = el("a", { href: `#${section.id}`, text: section.dataset.nav });
      const show = (isShown) => { section.hidden = !isShown; link.hidden = !isShown; };
      const isShown = !data.shown || data.shown.includes(section.id);
      const box = el("input", { type: "checkbox", checked: isShown, on: { change: () => show(box.checked) } });
      show(isShown);
      byId("sections").append(link);
      byId("section-choice").append(el("label", {}, [box, section.dataset.nav]));
    }
  }

  // Columns of the user's table, without those that the map shows.
  function ownColumns() {
    const onMap = /^(lat|latitude|lon|lng|long|longitude)$/i;
    return data.columns.map((column, at) => ({ ...column, cells: entities.columns[at] })).filter((column) => !(data.map.coast && onMap.test(column.name.trim())));
  }

  function entityTable() {
    const columns = [{
      title: "Entity", value: (row) => entities.name[row], class: "entity",
      cell: (row) => nameNode(entities.name[row], "button", { type: "button", class: "name", "aria-label": short(entities.name[row]) + ", show what it is made of" }),
    }];
    if (hasConfidence) {
      columns.push({ title: "Confidence", class: "number", first: "descending", value: (row) => entities.confidence[row], cell: (row) => meter(entities.confidence[row] / 1000, fixed(entities.confidence[row])) });
      columns.push({ title: "At least", class: "number", first: "descending", value: (row) => entities.lower[row], cell: (row) => fixed(entities.lower[row]) });
    }
    for (const { name, cells, is_numeric: isNumeric } of ownColumns()) {
      columns.push({ title: short(name), class: isNumeric ? "number" : "own", first: isNumeric ? "descending" : "ascending", value: (row) => cells[row], cell: (row) => nameNode(cellText(cells[row])), whole: (row) => cellText(cells[row]) });
    }
    columns.push({ title: "Nearest known", class: "words", cell: (row) => nameNodes((entities.nearest[row] || []).slice(0, 3).map((k) => known[k])) });
    const made = new PagedTable(byId("table"), {
      caption: "Imputed entities", columns, nRows: total, texts: allText, status: byId("table-status"),
      onPick: (row, byButton) => pick(row, { focus: byButton, moves: true, isFromTable: true }),
      onFilter: (rows, isFiltered) => {
        byId("clear").hidden = !isFiltered;
        if (map) map.shown = isFiltered ? new Set(rows) : null;
        if (map) map.redraw();
      },
    });
    const sorts = byId("sort-by");
    columns.forEach((column, place) => { if (column.value) sorts.append(el("option", { value: place, text: column.title })); });
    sorts.addEventListener("change", () => made.sort(Number(sorts.value)));
    if (hasConfidence && total) {
      made.sort(1, "descending");
      sorts.value = "1";
    }
    controls(made);
    columnChoice(made);
    const bounds = [];
    if (entities.contributors.length < total) bounds.push(`Contributions are shown for the ${count(entities.contributors.length)} entities of highest confidence; result.explain(name) in Python gives any other.`);
    if (entities.nearest.length < total) bounds.push(`Nearest known entities are shown for the first ${count(entities.nearest.length)}.`);
    if (bounds.length) byId("table-card").append(el("p", { class: "quiet gap", text: bounds.join(" ") }));
    return made;
  }

  function columnChoice(made) {
    made.columns.forEach((column, place) => {
      if (!place) return;
      const box = el("input", { type: "checkbox", checked: true, on: { change: () => made.toggle(place, box.checked) } });
      byId("column-choice").append(el("label", {}, [box, column.title]));
    });
  }

  function controls(made) {
    let waiting = 0;
    const search = byId("search"), least = byId("least");
    search.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        made.filter(search.value);
        if (!map) return;
        if (search.value.trim() && made.rows.length) map.fit(made.rows.slice(0, Math.min(500, made.nNamed || 500)));
        else map.reset();
      }, total > 20000 ? 200 : 0);
    });
    if (!hasConfidence || !total) byId("least-field").remove();
    else {
      least.max = String(Math.max(10, Math.ceil(Math.max(...entities.confidence.slice(0, 1), 0) / 10) * 10));
      least.addEventListener("input", () => {
        const value = Number(least.value);
        byId("least-value").textContent = fixed(value);
        made.limit("confidence", value > 0 ? (row) => entities.confidence[row] >= value : null);
      });
    }
    byId("clear").addEventListener("click", () => {
      clear(made);
      search.focus();
    });
    byId("export").addEventListener("click", () => download(`${data.title.replace(/[^\w-]+/g, "-") || "entities"}.csv`, exported(made.rows)));
  }

  function clear(made) {
    byId("search").value = "";
    if (byId("least")) {
      byId("least").value = "0";
      byId("least-value").textContent = fixed(0);
    }
    made.query = "";
    made.limits.clear();
    made.refresh();
    if (map) map.reset();
  }

  function allText(row) {
    const near = (entities.nearest[row] || []).slice(0, 3), from = (entities.contributors[row] || []).slice(0, 3);
    return [entities.name[row], ...entities.columns.map((cells) => cells[row] ?? ""), ...near.map((k) => known[k]), ...from.map((k) => known[k])].join("\n");
  }

  function exported(rows) {
    const head = ["entity", ...(hasConfidence ? ["confidence", "lower_bound"] : []), ...data.columns.map((each) => each.name), "nearest_known", "made_of"];
    const names = (list) => (list || []).map((k) => known[k]).join("; ");
    const mix = (row) => (entities.contributors[row] || []).map((k, at) => `${known[k]} ${(entities.shares[row][at] / 10).toFixed(1)} %`).join("; ");
    return [head, ...rows.map((row) => [
      entities.name[row], ...(hasConfidence ? [entities.confidence[row] / 1000, entities.lower[row] / 1000] : []),
      ...entities.columns.map((cells) => cells[row]), names(entities.nearest[row]), mix(row),
    ])];
  }

  function drawMap() {
    const card = byId("map-card");
    if (data.map.kind === "none" || !data.map.known.length) {
      card.parentElement.classList.add("alone");
      card.remove();
      return;
    }
    const nPoints = data.map.known.length / 3 + data.map.imputed.length / 3, all = data.n_known + total;
    const about = { earth: "Longitude and latitude.", given: "Coordinates as given.", groups: "The two directions in which groups of similar vectors differ most. Each group is named after the known entities at its centre." }[data.map.kind];
    byId("map-note").textContent = [about, "Drag to move, Ctrl + scroll or pinch to zoom. Choose a point to see what it is made of; a wider line is a larger share.",
      nPoints < all ? `${count(nPoints)} of ${count(all)} entities are drawn.` : ""].filter(Boolean).join(" ");
    const canvas = byId("map");
    const aspect = Math.min(2.4, Math.max(1.2, data.map.width / Math.max(1, data.map.height)));
    canvas.style.aspectRatio = String(window.innerWidth < 600 ? Math.min(aspect, 1.3) : aspect);
    canvas.setAttribute("aria-label", `Map of ${count(data.map.known.length / 3)} known and ${count(data.map.imputed.length / 3)} imputed entities. The table below has the same entities.`);
    map = new PointMap(canvas, byId("map-tip"), data.map, {
      confidence: entities.confidence, describe,
      onPick: (row) => { if (!table.reveal(row)) { clear(table); table.reveal(row); } pick(row, {}); },
      onSelect: (rows) => { table.limit("lasso", (row) => rows.has(row)); lasso(false); },
      linksOf: (row) => (entities.contributors[row] || []).map((k, place) => [k, entities.shares[row][place]]),
      onHint: hint,
    });
    byId("zoom-in").addEventListener("click", () => map.scale(1.6));
    byId("zoom-out").addEventListener("click", () => map.scale(1 / 1.6));
    byId("zoom-reset").addEventListener("click", () => map.reset());
    byId("lasso").addEventListener("click", () => lasso(!map.isSelecting));
    const colours = byId("map-colours");
    const choices = [...(hasConfidence ? [["confidence", "Confidence"]] : []), ["group", "Group"], ...categories().map((category) => [category, category.name])];
    map.colour = choices[0][0];
    for (const [value, label] of choices) {
      const button = el("button", { type: "button", text: short(label), on: { click: () => { map.colour = value; legend(); map.redraw(); } } });
      colours.append(button);
      buttons.set(value, button);
    }
    legend();
  }

  // Columns of the user's table with few different texts, each with the colour of every entity.
  function categories() {
    return ownColumns().filter((column) => !column.is_numeric).map(({ name, cells }) => {
      const counts = new Map();
      for (const cell of cells) if (cell !== null) counts.set(cell, (counts.get(cell) || 0) + 1);
      const labels = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one));
      const numbers = new Map(labels.map((label, number) => [label, number]));
      return { name, labels, numbers: cells.map((cell) => numbers.get(cell)) };
    }).filter(({ labels }) => labels.length > 1 && labels.length <= MOST_CATEGORIES).slice(0, 2);
  }

  function legend() {
    for (const [value, button] of buttons) button.setAttribute("aria-pressed", String(value === map.colour));
    const dot = (colour, text) => { const mark = el("span", { class: "dot" }); mark.style.background = colour; return el("span", { class: "key" }, [mark, text]); };
    const parts = map.colour === "group"
      ? data.map.groups.map((text, at) => dot(colourOf(at), nameNode(text)))
      : map.colour.labels
        ? [dot("var(--known)", "known"), ...map.colour.labels.map((text, at) => dot(colourOf(at), nameNode(String(text))))]
        : [dot("var(--known)", "known"), el("span", { class: "key" }, ["imputed, confidence ", fixed(map.range ? map.range[0] : 0), el("span", { class: "ramp" }), fixed(map.range ? map.range[1] : 0)])];
    byId("map-legend").replaceChildren(...parts);
  }

  function lasso(isOn) {
    map.isSelecting = isOn;
    byId("lasso").setAttribute("aria-pressed", String(isOn));
    byId("map").style.touchAction = isOn ? "none" : "";
    if (isOn) hint("Draw around points to see them in the table");
  }

  function hint(text) {
    const note = byId("map-hint");
    note.textContent = text;
    note.hidden = false;
    clearTimeout(hidesHint);
    hidesHint = setTimeout(() => { note.hidden = true; }, 1800);
  }

  // What a card beside the pointer says.
  function describe(kind, row) {
    if (kind === "known") return [nameNode(known[row], "strong"), el("span", { text: "known" })];
    const lines = [nameNode(entities.name[row], "strong")];
    if (hasConfidence) lines.push(el("span", { text: `confidence ${fixed(entities.confidence[row])}, at least ${fixed(entities.lower[row])}` }));
    const from = (entities.contributors[row] || []).slice(0, 3);
    if (from.length) lines.push(el("span", {}, ["made of ", ...from.flatMap((k, place) => [place ? ", " : "", nameNode(known[k]), ` ${Math.round(entities.shares[row][place] / 10)}\u00a0%`])]));
    const near = (entities.nearest[row] || []).slice(0, 3);
    if (near.length) lines.push(el("span", {}, ["near ", ...nameNodes(near.map((k) => known[k]))]));
    return lines;
  }

  function pick(row, { focus, moves, isFirst, isFromTable }) {
    byId("detail").classList.toggle("drawer", Boolean(isFromTable) || (!map && !isFirst));
    table.choose(row);
    if (map) map.choose(row);
    if (map && moves) map.fit([row], true);
    detail.show(row);
    if (isFirst) return;
    const link = HASH + encodeURIComponent(entities.name[row]);
    if (link.length < 2000) history.replaceState(null, "", link);
    const panel = byId("detail");
    if (focus) panel.focus({ preventScroll: true });
    if (window.innerWidth <= 900) panel.scrollIntoView({ block: "start" });
  }

  function close(row) {
    table.choose(-1);
    if (map) map.choose(-1);
    detail.show(-1);
    byId("detail").classList.remove("drawer");
    history.replaceState(null, "", "#entities");
    const back = byId("table").querySelector(`tr[data-row="${row}"] button`);
    if (back) back.focus();
  }

  // The entity that the address names, or one whose mix tells a story.
  function start() {
    detail.show(-1);
    if (!asked() && data.telling >= 0 && total) pick(data.telling, { isFirst: true });
    window.addEventListener("hashchange", asked);
  }

  function asked() {
    if (!location.hash.startsWith(HASH)) return false;
    let name = "";
    try { name = decodeURIComponent(location.hash.slice(HASH.length)); } catch { return false; }
    const row = entities.name.indexOf(name);
    if (row < 0) return false;
    if (!table.reveal(row)) { clear(table); table.reveal(row); }
    pick(row, { isFirst: true, moves: true });
    byId("entities").scrollIntoView({ block: "start" });
    return true;
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
      caption: "Matches", nRows: rows.length, texts: (row) => `${rows[row][0]} ${rows[row][1]}`,
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
      card.append(el("p", { class: "quiet", text: "None: no known vector contradicts what its neighbours predict." }));
      return;
    }
    card.append(el("p", { class: "quiet", text: "Known entities whose own vector contradicts what their neighbours predict. Often the word has another meaning or the match is wrong. Exclude such an entity or give it an alias, and run again. The gap is the expected centred cosine minus the actual one." }));
    const holder = el("div");
    card.append(holder);
    const made = new PagedTable(holder, {
      caption: "Suspicious known entities", nRows: rows.length, texts: (row) => rows[row][0],
      columns: [
        { title: "Entity", value: (row) => rows[row][0], cell: (row) => nameNode(rows[row][0]) },
        { title: "Word", value: (row) => rows[row][1], cell: (row) => nameNode(rows[row][1]) },
        { title: "Centred cosine", class: "number", value: (row) => rows[row][2], cell: (row) => fixed(rows[row][2]) },
        { title: "Expected", class: "number", first: "descending", value: (row) => rows[row][3], cell: (row) => fixed(rows[row][3]) },
        { title: "Gap", class: "number", first: "descending", value: (row) => rows[row][3] - rows[row][2], cell: (row) => fixed(rows[row][3] - rows[row][2]) },
      ],
    });
    made.sort(4, "descending");
  }

  function facts() {
    const card = byId("facts");
    const pairs = [
      ["Method", data.setting_text], ["Table", data.domain], ["Dimensions", String(data.n_dims)],
      ["Residual of the linear system", data.residual.toExponential(1).replace("0.0e+0", "0")],
    ];
    card.append(el("dl", { class: "facts" }, pairs.flatMap(([label, value]) => [el("dt", { text: label }), el("dd", { text: value })])));
    card.append(el("details", {}, [el("summary", { text: "Method with exact values" }), el("p", { text: data.setting_exact }), el("pre", { text: JSON.stringify(data.setting, null, 2) })]));
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
  }
})();
