"use strict";
// How the result was made: the manifest, without its lists of entities, which the page shows elsewhere.
const KIB = 1024;

function size(bytes) {
  if (bytes === null) return "";
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes, unit = 0;
  while (value >= KIB && unit < units.length - 1) { value /= KIB; unit += 1; }
  return `${unit ? value.toFixed(1) : count(value)} ${units[unit]}`;
}

const spaced = (name) => name.replaceAll("_", " ");

function factList(lines, label = spaced) {
  return el("dl", { class: "facts" }, lines.flatMap(([what, value]) =>
    [el("dt", { text: label(what) }), el("dd", {}, el("bdi", { dir: "auto", text: value }))]));
}

function drawMade(card, how) {
  card.append(el("h3", { text: "Record of the run" }));
  card.append(el("div", { class: "gap" }, factList(how.made, (name) => name)));
  if (how.files.length) card.append(el("h4", { text: "Input files" }), inputFiles(how.files));
  else card.append(el("p", { class: "quiet gap", text: "No input files are recorded: tables and vectors were passed in Python." }));
  const fold = (title, lines, label) => {
    if (lines.length) card.append(el("details", {}, [el("summary", { text: title }), factList(lines, label)]));
  };
  fold("Options", how.options);
  fold("Counts", how.counts);
  fold("Versions of packages", how.packages, (name) => name);
}

function inputFiles(files) {
  return el("ul", { class: "files" }, files.map(([role, path, bytes, digest]) => el("li", {}, [
    el("span", { class: "quiet role", text: spaced(role) }),
    el("span", { class: "path" }, [el("bdi", { dir: "auto", text: path }), " ", el("span", { class: "quiet", text: size(bytes) })]),
    digest ? el("span", { class: "hash" }, [el("span", { class: "quiet", text: "SHA-256 " }), el("code", { text: digest })]) : "",
  ])));
}
