"use strict";
// What a person sees who looks at the new vectors: how alike they are, and which words they are near.
const LOOKS = { new: "New vectors", hidden: "Hidden known entities, imputed", true: "Hidden known entities, true" };

function drawLooks(section, sanity) {
  if (!sanity) {
    section.remove();
    return;
  }
  const card = byId("looks");
  if (sanity.warning) card.append(el("p", { class: "notice", text: sanity.warning }));
  const several = sanity.looks.length > 1;
  card.append(el("p", { text: several
    ? "New vectors should be about as spread as the vectors of known entities, and near as many different words."
    : "Too few known entities were hidden to say what to expect." }));
  const rows = sanity.looks.map((look) => [
    LOOKS[look.of], count(look.n_vectors), figureOf(look.spread),
    count(look.n_nearest), [nameNode(look.hub), ` (${percent(1000 * look.largest_hub)})`],
  ]);
  card.append(plainTable("What vectors look like", [["Which", "wide"], ["Vectors", "number"], ["Mean cosine between two", "number"], ["Different nearest words", "number"], ["Most frequent nearest word", "own"]], rows));
  if (typeof sanity.stand_for === "number") card.append(el("p", { class: "quiet gap", text: `The known entities that the new vectors are mostly made of have a mean cosine of ${figureOf(sanity.stand_for)}.` }));
  if (!sanity.is_whole_file) card.append(el("p", { class: "quiet gap", text: "Nearest words were sought among a part of the words of the file." }));
  const holder = byId("examples");
  for (const [title, examples] of [["Five new entities", sanity.examples], ["Five hidden known entities", sanity.hidden_examples]]) {
    if (examples.length) holder.append(drawExamples(title.replace("Five", examples.length === 5 ? "Five" : count(examples.length)), examples));
  }
  if (!holder.childElementCount) holder.remove();
}

function drawExamples(title, examples) {
  const rows = examples.map(([entity, nearest]) => [nameNode(entity), nameNodes(nearest)]);
  return el("div", { class: "card" }, [
    el("h3", { text: title }),
    plainTable(title, [["Entity", "wide"], ["Nearest words in the file", "words"]], rows),
  ]);
}
