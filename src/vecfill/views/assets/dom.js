"use strict";
// Names come from users' files: they reach the page by textContent and attributes only, never as HTML.
const LONGEST = 60;

function short(text) {
  if (text.length <= LONGEST) return text;
  return Array.from(text.slice(0, 4 * LONGEST)).slice(0, LONGEST - 1).join("") + "…";
}

function el(tag, options = {}, children = []) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    // A number and its percent sign stay on one line.
    if (key === "text") node.textContent = String(value).replace(/(\d) %/g, "$1\u00a0%");
    else if (key === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of [].concat(children)) node.append(child);
  return node;
}

// A name in a cell of its own direction, cut if long, whole in its title.
function nameNode(text, tag = "bdi", options = {}) {
  const shown = short(text);
  return el(tag, { ...options, dir: "auto", text: shown, title: shown === text ? undefined : text });
}

function nameNodes(list) {
  const parts = [];
  list.forEach((each, place) => {
    if (place) parts.push(", ");
    parts.push(nameNode(each));
  });
  return parts;
}

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes = {}, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  if (text !== undefined) node.textContent = text;
  return node;
}

const byId = (id) => document.getElementById(id);
const count = (value) => value.toLocaleString("en-US");
const plural = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;
const percent = (thousandths) => `${(thousandths / 10).toFixed(1)}\u00a0%`;
const fixed = (thousandths) => (thousandths / 1000).toFixed(2).replace("-", "−");
const fold = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
