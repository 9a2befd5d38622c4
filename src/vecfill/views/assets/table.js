"use strict";
const PAGE_ROWS = 25;

// A table of any length, a page at a time. Columns: {title, cell(row) -> nodes, value(row), class, first: "ascending"|"descending"}.
// Rows are numbers from 0; nothing is made for rows that are not on show.
class PagedTable {
  constructor(holder, { caption, columns, nRows, texts, onPick, status, pageRows = PAGE_ROWS }) {
    Object.assign(this, { columns, nRows, texts, onPick, status, pageRows, page: 0, sorted: null, chosen: -1 });
    this.every = Array.from({ length: nRows }, (_, row) => row);
    this.order = this.every;
    this.rows = this.every;
    this.query = "";
    this.head = el("tr");
    this.body = el("tbody", { class: onPick ? "pick" : undefined });
    this.pager = el("div", { class: "pager" });
    columns.forEach((column, place) => this.head.append(this.header(column, place)));
    const table = el("table", {}, [el("caption", { text: caption, class: "skip" }), el("thead", {}, this.head), this.body]);
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

  sort(place, direction) {
    const column = this.columns[place];
    const now = this.sorted && this.sorted.place === place ? this.sorted.direction : null;
    const first = column.first || "ascending";
    const next = direction || (now === null ? first : now === "ascending" ? "descending" : "ascending");
    this.sorted = { place, direction: next };
    const sign = next === "ascending" ? 1 : -1;
    const values = this.every.map((row) => column.value(row));
    const compare = typeof values[0] === "string" ? new Intl.Collator(undefined, { numeric: true }).compare : (a, b) => a - b;
    this.order = [...this.every].sort((a, b) => sign * compare(values[a], values[b]) || a - b);
    [...this.head.children].forEach((cell, number) => {
      if (!cell.hasAttribute("aria-sort")) return;
      const mine = number === place;
      cell.setAttribute("aria-sort", mine ? next : "none");
      cell.querySelector(".arrow").textContent = mine ? (next === "ascending" ? "↑" : "↓") : "";
    });
    this.filter(this.query);
  }

  filter(query) {
    this.query = query;
    const wanted = fold(query.trim());
    if (wanted && !this.folded) this.folded = this.every.map((row) => fold(this.texts(row).slice(0, 10000)));
    this.rows = wanted ? this.order.filter((row) => this.folded[row].includes(wanted)) : this.order;
    this.page = 0;
    this.show();
  }

  // Turn to the page that holds a row, leaving the search if it hides it.
  reveal(row) {
    let place = this.rows.indexOf(row);
    if (place < 0) {
      this.filter("");
      place = this.rows.indexOf(row);
    }
    this.page = Math.floor(place / this.pageRows);
    this.show();
  }

  choose(row) {
    this.chosen = row;
    for (const line of this.body.children) line.classList.toggle("chosen", Number(line.dataset.row) === row);
  }

  show() {
    const first = this.page * this.pageRows;
    const shown = this.rows.slice(first, first + this.pageRows);
    this.body.replaceChildren(...shown.map((row) => el("tr", { "data-row": row, class: row === this.chosen ? "chosen" : undefined },
      this.columns.map((column) => el("td", { class: column.class }, column.cell(row))))));
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
    if (this.status) this.status.textContent = this.query.trim() ? `${plural(this.rows.length, "entity", "entities")} found` : plural(this.nRows, "entity", "entities");
  }

  turn(page, label) {
    this.page = page;
    this.show();
    // The button was made anew: the keyboard stays where it was.
    const again = [...this.pager.querySelectorAll("button")].find((button) => button.textContent === label && !button.disabled);
    if (again) again.focus();
  }
}
