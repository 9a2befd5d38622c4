"use strict";
const PAGE_ROWS = 25, PHONE_ROWS = 8;

// A table of any length, a page at a time. Columns: {title, cell(row) -> nodes, value(row), class, first: "ascending"|"descending"}.
// Rows are numbers from 0; nothing is made for rows that are not on show.
class PagedTable {
  constructor(holder, { caption, columns, nRows, texts, onPick, onFilter, status, pageRows = window.innerWidth <= 520 ? PHONE_ROWS : PAGE_ROWS }) {
    Object.assign(this, { columns, nRows, texts, onPick, onFilter, status, pageRows, page: 0, sorted: null, chosen: -1, hidden: new Set() });
    this.every = Array.from({ length: nRows }, (_, row) => row);
    this.order = this.every;
    this.rows = this.every;
    this.query = "";
    this.limits = new Map();
    this.head = el("tr");
    this.body = el("tbody", { class: onPick ? "pick" : undefined });
    this.pager = el("div", { class: "pager" });
    columns.forEach((column, place) => this.head.append(this.header(column, place)));
    const table = el("table", { class: "stack", role: "table" }, [el("caption", { text: caption, class: "skip" }), el("thead", {}, this.head), this.body]);
    holder.append(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table), this.pager);
    if (onPick) {
      this.body.addEventListener("click", (event) => {
        const row = event.target.closest("tr");
        if (row && row.dataset.row) onPick(Number(row.dataset.row), event.target.closest("button") !== null);
      });
    }
    this.show();
  }

  header(column, place) {
    if (!column.value) return el("th", { scope: "col", class: column.class, text: column.title });
    const arrow = el("span", { class: "arrow", "aria-hidden": "true" });
    const button = el("button", { type: "button", on: { click: () => this.sort(place) } }, [column.title, " ", arrow]);
    return el("th", { scope: "col", class: column.class, "aria-sort": "none" }, button);
  }

  // Show a column or leave it out; it is still searched, sorted by and exported.
  toggle(place, isShown) {
    if (isShown) this.hidden.delete(place);
    else this.hidden.add(place);
    this.head.children[place].hidden = !isShown;
    this.show();
  }

  sort(place, direction) {
    const column = this.columns[place];
    const now = this.sorted && this.sorted.place === place ? this.sorted.direction : null;
    const first = column.first || "ascending";
    const next = direction || (now === null ? first : now === "ascending" ? "descending" : "ascending");
    this.sorted = { place, direction: next };
    const sign = next === "ascending" ? 1 : -1;
    const values = this.every.map((row) => column.value(row));
    const isText = values.some((value) => typeof value === "string");
    const words = new Intl.Collator(undefined, { numeric: true }).compare;
    const compare = isText ? (a, b) => words(String(a), String(b)) : (a, b) => a - b;
    const isEmpty = (value) => value === null || value === undefined || value === "";
    // Empty cells come last in either direction.
    this.order = [...this.every].sort((a, b) => {
      const [one, other] = [isEmpty(values[a]), isEmpty(values[b])];
      if (one || other) return one - other || a - b;
      return sign * compare(values[a], values[b]) || a - b;
    });
    [...this.head.children].forEach((cell, number) => {
      if (!cell.hasAttribute("aria-sort")) return;
      const mine = number === place;
      cell.setAttribute("aria-sort", mine ? next : "none");
      cell.querySelector(".arrow").textContent = mine ? (next === "ascending" ? "↑" : "↓") : "";
    });
    this.refresh();
  }

  filter(query) {
    this.query = query;
    this.refresh();
  }

  // A condition on rows by name, such as a least confidence; null takes it away.
  limit(name, isKept) {
    if (isKept) this.limits.set(name, isKept);
    else this.limits.delete(name);
    this.refresh();
  }

  get isFiltered() {
    return this.query.trim() !== "" || this.limits.size > 0;
  }

  refresh() {
    const wanted = fold(this.query.trim());
    if (wanted && !this.folded) this.folded = this.every.map((row) => fold(this.texts(row).slice(0, 10000)));
    const limits = [...this.limits.values()];
    this.rows = wanted || limits.length
      ? this.order.filter((row) => (!wanted || this.folded[row].includes(wanted)) && limits.every((isKept) => isKept(row)))
      : this.order;
    // What is found in a name, the first line of a row's text, comes before what is found elsewhere.
    const inName = (row) => this.folded[row].split("\n", 1)[0].includes(wanted);
    if (wanted) {
      const named = this.rows.filter(inName), isNamed = new Set(named);
      this.nNamed = named.length;
      this.rows = [...named, ...this.rows.filter((row) => !isNamed.has(row))];
    }
    this.page = 0;
    this.show();
    if (this.onFilter) this.onFilter(this.rows, this.isFiltered);
  }

  // Turn to the page that holds a row; false if a filter hides it.
  reveal(row) {
    const place = this.rows.indexOf(row);
    if (place < 0) return false;
    this.page = Math.floor(place / this.pageRows);
    this.show();
    return true;
  }

  choose(row) {
    this.chosen = row;
    for (const line of this.body.children) line.classList.toggle("chosen", Number(line.dataset.row) === row);
  }

  show() {
    const first = this.page * this.pageRows;
    const shown = this.rows.slice(first, first + this.pageRows);
    this.body.replaceChildren(...shown.map((row) => el("tr", { "data-row": row, class: row === this.chosen ? "chosen" : undefined },
      this.columns.map((column, place) => el("td", { class: column.class, "data-label": column.title, hidden: this.hidden.has(place), title: column.whole ? column.whole(row) : undefined }, column.cell(row))))));
    if (!shown.length) {
      this.body.append(el("tr", {}, el("td", { colspan: this.columns.length, class: "quiet", text: this.nRows ? "Nothing matches." : "None." })));
    }
    const last = Math.max(0, Math.ceil(this.rows.length / this.pageRows) - 1);
    const step = (label, page, off) => el("button", { type: "button", disabled: off, text: label, on: { click: () => this.turn(page, label) } });
    this.pager.replaceChildren();
    if (last > 0) {
      this.pager.append(
        step("First", 0, this.page === 0), step("Previous", this.page - 1, this.page === 0),
        el("span", { class: "quiet", text: `${count(first + 1)}–${count(first + shown.length)} of ${count(this.rows.length)}` }),
        step("Next", this.page + 1, this.page === last), step("Last", last, this.page === last),
      );
    }
    if (this.status) this.status.textContent = this.isFiltered ? `${plural(this.rows.length, "entity", "entities")} found` : plural(this.nRows, "entity", "entities");
  }

  turn(page, label) {
    this.page = page;
    this.show();
    // The button was made anew: the keyboard stays where it was.
    const again = [...this.pager.querySelectorAll("button")].find((button) => button.textContent === label && !button.disabled);
    if (again) again.focus();
  }
}

// No spreadsheet may take a cell for a formula; numbers stay numbers.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) && value.length > 1 ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function download(name, rows) {
  const text = rows.map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
  const link = el("a", { href: URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
