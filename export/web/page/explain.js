/**
 * The explainer: runs the model as it is and with changes, and shows both. The controls hold the changes; the address
 * has a copy of them.
 */

"use strict";

const $ = (id) => document.getElementById(id);
const KINDS = { encoder: "Encoder self-attention", decoder: "Decoder self-attention", cross: "Cross-attention" };
const VIEWS = { after: "with your changes", before: "unchanged model", difference: "difference" };
const MOST_BEAMS = 8; // Each beam is a step of its own.
const START = "<s>";
let translator, controller, before, after;

const range = (length) => Array.from({ length }, (_, i) => i);
const number = (x, digits = 2) => x.toFixed(digits).replace(/^-(?=[0.]+$)/, "").replace("-", "−");
const language = () => $("language").value || undefined;
const tagged = (code) => code?.replaceAll("_", "-") ?? ""; // For screen readers; without a code, the language is unknown.

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** An element of MathML: `math("mfrac", "a", math("mn", "6"))`. */
function math(name, ...children) {
  const made = document.createElementNS("http://www.w3.org/1998/Math/MathML", name);
  made.append(...children);
  return made;
}

const [mi, mn, mo] = ["mi", "mn", "mo"].map((name) => (text) => math(name, String(text)));

function problem(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

// The controls.

const boxes = () => [...$("heads").querySelectorAll("input[data-head]")];
const pieceButtons = () => [...$("pieces").querySelectorAll("button")];
const positionFields = () => [...$("pieces").querySelectorAll("input")];

/** What the controls say, as `translator.explain` takes it: only what differs from the model as it is. */
function changes() {
  const found = {}, { settings } = translator.settings;
  const off = boxes().filter(({ checked }) => !checked).map(({ dataset }) => [dataset.kind, Number(dataset.layer), Number(dataset.head)]);
  const hidden = pieceButtons().flatMap((button, i) => (button.ariaPressed === "true" ? [i] : []));
  const positions = positionFields().flatMap(({ valueAsNumber, validity }, i) => (validity.valid && valueAsNumber !== i ? [[i, valueAsNumber]] : []));
  if (off.length) found.off = off;
  if (hidden.length) found.hidden = hidden;
  if (positions.length) found.positions = Object.fromEntries(positions);
  if ($("shift").validity.valid && $("shift").valueAsNumber) found.shift = $("shift").valueAsNumber;
  if ($("beams").validity.valid && $("beams").valueAsNumber !== settings.num_beams) found.numBeams = $("beams").valueAsNumber;
  if (Math.abs($("penalty").valueAsNumber - settings.length_penalty) > 1e-6) found.lengthPenalty = $("penalty").valueAsNumber;
  return found;
}

/** Sets the controls to the changes of an address, or to none. */
function setControls(parameters = new URLSearchParams()) {
  const listed = (name) => (parameters.get(name) ?? "").split(" ").filter(Boolean), off = new Set(listed("off"));
  for (const box of boxes()) box.checked = !off.has(`${box.dataset.kind}.${box.dataset.layer}.${box.dataset.head}`);
  const hidden = new Set(listed("hidden").map(Number)), positions = new Map(listed("positions").map((one) => one.split(":").map(Number)));
  pieceButtons().forEach((button, i) => (button.ariaPressed = String(hidden.has(i))));
  positionFields().forEach((field, i) => (field.value = positions.get(i) ?? i));
  $("shift").value = parameters.get("shift") ?? 0;
  $("beams").value = parameters.get("beams") ?? translator.settings.settings.num_beams;
  $("penalty").value = parameters.get("penalty") ?? translator.settings.settings.length_penalty;
  settle();
}

/** What follows from the controls without the model. */
function settle() {
  for (const all of $("heads").querySelectorAll("input[data-all]")) {
    const of = [...all.closest("tr").querySelectorAll("[data-head]")], on = of.filter(({ checked }) => checked).length;
    all.checked = on === of.length;
    all.indeterminate = on > 0 && on < of.length;
  }
  $("penalty-value").textContent = number($("penalty").valueAsNumber);
}

function address(changed) {
  const { off, hidden, positions, shift, numBeams, lengthPenalty } = changed;
  const parts = { to: language(), text: $("text").value, off: off?.map((one) => one.join(".")).join(" "), hidden: hidden?.join(" ") };
  Object.assign(parts, { positions: positions && Object.entries(positions).map((one) => one.join(":")).join(" "), shift, beams: numBeams, penalty: lengthPenalty });
  return `#${new URLSearchParams(Object.entries(parts).filter(([, value]) => value !== undefined))}`;
}

/** The table of heads, with a box for each head and one for each layer. */
function layHeads(heads) {
  const numbers = range(heads.cross[1]);
  const box = (label, data) => {
    const made = element("input", { type: "checkbox", checked: true, ariaLabel: label });
    Object.assign(made.dataset, data);
    return element("td", {}, made);
  };
  const titles = ["all", ...numbers.map((head) => head + 1)].map((text) => element("th", { scope: "col", textContent: text }));
  const groups = Object.entries(KINDS).map(([kind, name]) => {
    const rows = range(heads[kind][0]).map((layer) => {
      const of = numbers.map((head) => box(`${name}, layer ${layer + 1}, head ${head + 1}`, { kind, layer, head }));
      const title = element("th", { scope: "row", textContent: `Layer ${layer + 1}` });
      return element("tr", {}, title, box(`${name}, layer ${layer + 1}, all heads`, { all: "" }), ...of);
    });
    return element("tbody", {}, element("tr", {}, element("th", { scope: "rowgroup", colSpan: numbers.length + 2, textContent: name })), ...rows);
  });
  $("heads").replaceChildren(element("thead", {}, element("tr", {}, element("th", { scope: "col", textContent: "Head" }), ...titles)), ...groups);
}

/** The pieces of the source, each with its position. */
function layPieces() {
  const { source_length, target_length } = translator.settings, last = Math.max(source_length, target_length) - 1;
  $("pieces").replaceChildren(...before.source.map((piece, i) => {
    const button = element("button", { type: "button", textContent: piece, ariaPressed: "false", lang: $("text").lang });
    button.setAttribute("aria-describedby", "pieces-help");
    const field = element("input", { type: "number", required: true, min: 0, max: last, value: i, ariaLabel: `Position of ${piece}` });
    return element("li", {}, button, field);
  }));
  $("shift").max = last;
}

// Work.

/** Runs the model with the changes. `said` is what was changed, for the status. */
async function run(said) {
  controller?.abort();
  controller = new AbortController();
  const { signal } = controller, text = $("text").value.trim(), options = { targetLanguage: language(), signal };
  const key = JSON.stringify([text, language()]);
  problem("");
  document.body.dataset.state = "busy";
  try {
    if (before?.key !== key) {
      const isFirst = before === undefined;
      before = after = { ...(await translator.explain(text, {}, options)), key };
      if (isFirst) layHeads(before.heads);
      layPieces();
      if (isFirst) setControls(new URLSearchParams(location.hash.slice(1)));
    }
    const changed = changes(), isChanged = Object.keys(changed).length > 0;
    after = isChanged ? await translator.explain(text, changed, options) : before;
    history.replaceState(null, "", address(changed));
    $("reset").disabled = !isChanged;
    show(changed);
    $("status").textContent = [said, outcome(isChanged)].filter(Boolean).join(" ");
    document.body.dataset.state = "done";
  } catch (error) {
    if (error.name === "AbortError") return;
    problem(error.message);
    document.body.dataset.state = "failed";
  }
}

/** What came of the changes, in words. */
function outcome(isChanged) {
  const [one, other] = [before, after].map(({ hypotheses }) => hypotheses[0]);
  if (!one) return "Type a sentence.";
  if (!other) return "The changed model finds no translation.";
  if (!isChanged) return "Nothing is changed.";
  const scores = `Score ${number(other.score, 3)}, unchanged ${number(one.score, 3)}.`;
  return `${one.text === other.text ? "The translation stays the same." : `New translation: “${other.text}”`} ${scores}`;
}

/** Shows everything. */
function show(changed) {
  const [one, other] = [before, after].map(({ hypotheses }) => hypotheses[0]);
  $("translations").hidden = $("explained").hidden = !other;
  if (!other) return;
  for (const id of ["before", "after"]) $(id).lang = tagged(language() ?? translator.settings.translation_language);
  const [old, current] = differences(one.text, other.text);
  $("before").replaceChildren(...old.map(({ text, common }) => (common ? text : element("del", { textContent: text }))));
  $("after").replaceChildren(...current.map(({ text, common }) => (common ? text : element("ins", { textContent: text }))));
  $("score-before").textContent = `score ${number(one.score, 3)}`;
  $("score-after").textContent = `score ${number(other.score, 3)}`;
  showPositions(changed);
  showSearch();
  showAttention();
}

/** The words of two texts, and whether both have them in the same order: `[{text, common}, ...]` of each. */
function differences(one, other) {
  const segmenter = Intl.Segmenter && new Intl.Segmenter(undefined, { granularity: "word" });
  const split = (text) => (segmenter ? Array.from(segmenter.segment(text), ({ segment }) => segment) : text.split(/(\s+)/));
  const [a, b] = [split(one), split(other)], lengths = [...a, ""].map(() => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  }
  const found = [a.map((text) => ({ text, common: false })), b.map((text) => ({ text, common: false }))];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) found[0][i++].common = found[1][j++].common = true;
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return found;
}

function showPositions({ positions = {}, hidden = [] }) {
  const { position_type, first_position, hidden_dim, max_wavelength } = translator.settings.model;
  const isLearned = position_type === "learned";
  $("sinusoidal").toggleAttribute("hidden", isLearned);
  $("learned").toggleAttribute("hidden", !isLearned);
  for (const one of document.querySelectorAll(".wavelength")) one.textContent = max_wavelength;
  for (const one of document.querySelectorAll(".width")) one.textContent = hidden_dim;
  const moved = Object.entries(positions).map(([i, place]) => `“${before.source[i]}” has pos = ${place + first_position} instead of ${Number(i) + first_position}.`);
  if (hidden.length) moved.push(`Hidden: ${hidden.map((i) => `“${before.source[i]}”`).join(", ")}.`);
  $("moved").textContent = moved.join(" ") || `The first piece has pos = ${first_position}.`;
}

function table(place, titles, rows) {
  const head = element("tr", {}, ...titles.map((textContent) => element("th", { scope: "col", textContent })));
  place.replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}

function showSearch() {
  const [best] = after.hypotheses, { length_penalty_type } = translator.settings.settings, length = best.tokens.length;
  const isPower = length_penalty_type === "power", a = number(after.lengthPenalty), target = $("after").lang;
  const base = (length) => (isPower ? length : math("mrow", mo("("), math("mfrac", math("mrow", mn(5), mo("+"), length), mn(6)), mo(")")));
  const fraction = (above, length, power) => math("mfrac", above, math("msup", base(length), power));
  $("score").replaceChildren(
    mi("score"), mo("="), fraction(math("mrow", mi("log"), mi("P")), mi("T"), mi("a")),
    mo("="), fraction(mn(number(best.logProb)), mn(length), mn(a)),
    mo("="), math("mfrac", mn(number(best.logProb)), mn(number(best.divisor))), mo("="), mn(number(best.score, 3)),
  );
  table($("hypotheses-table"), ["Translation", "log P", "T", "divisor", "score"], after.hypotheses.map((one, i) => {
    const title = element("th", { scope: "row", textContent: one.text, lang: target, dir: "auto" });
    const cells = [number(one.logProb), one.tokens.length, number(one.divisor), number(one.score, 3)].map((textContent) => element("td", { textContent }));
    return element("tr", { className: i ? "" : "best" }, title, ...cells);
  }));
  const likeliest = after.hypotheses.reduce((most, one) => (one.logProb > most.logProb ? one : most));
  const why = likeliest === best ? "It also has the largest log P of these." : `Without a length penalty it would be “${likeliest.text}”, which is more probable but has ${likeliest.tokens.length} pieces.`;
  $("why").textContent = `The best score wins: ${number(best.score, 3)}. ${after.hypotheses.length > 1 ? why : ""} T is the number of pieces, with the end.`;
  const most = Math.max(...after.steps.map(({ live }) => live.length));
  const named = ({ token, logProb, parent, best }) => `${best ? "★ " : ""}${token} ${number(logProb)}${after.numBeams > 1 ? ` ← ${parent + 1}` : ""}`;
  table($("steps"), ["Step", ...range(most).map((i) => i + 1), "Ended"], after.steps.map(({ live, ended }, i) => {
    const cells = range(most).map((i) => element("td", { textContent: live[i] ? named(live[i]) : "", className: live[i]?.best ? "best" : "" }));
    const last = element("td", { textContent: ended.map(named).join(", "), className: ended.some(({ best }) => best) ? "best" : "" });
    return element("tr", {}, element("th", { scope: "row", textContent: i + 1 }), ...cells, last);
  }));
}

function options(select, names) {
  const chosen = select.value;
  select.replaceChildren(...names.map(([value, name]) => new Option(name, value)));
  if (names.some(([value]) => String(value) === chosen)) select.value = chosen;
}

/** Fills the lists of layers and heads for the chosen kind. */
function layChoices() {
  const [layers, heads] = before.heads[$("kind").value];
  options($("layer"), range(layers).map((i) => [i, i + 1]));
  options($("head"), [["", "all, averaged"], ...range(heads).map((i) => [i, i + 1])]);
}

function showAttention() {
  layChoices();
  const kind = $("kind").value, layer = Number($("layer").value), view = $("view").value, [, heads] = before.heads[kind];
  const chosen = $("head").value === "" ? range(heads) : [Number($("head").value)];
  const shown = view === "before" ? before : after, words = shown.hypotheses[0].tokens, source = before.source;
  const [rows, columns] = { encoder: [source, source], decoder: [words, [START, ...words.slice(0, -1)]], cross: [words, source] }[kind];
  const weight = ({ attention }, t, s) => chosen.reduce((sum, head) => sum + (attention[kind][layer][head][t]?.[s] ?? 0), 0) / chosen.length;
  // A row of the decoder can be compared if the same words were written before it.
  const same = kind === "encoder" ? rows.length : 1 + [...words, ""].findIndex((word, i) => word !== before.hypotheses[0].tokens[i]);
  const languages = [kind === "encoder" ? $("text").lang : $("after").lang, kind === "decoder" ? $("after").lang : $("text").lang];
  const top = element("tr", {}, element("td"), ...columns.map((textContent) => element("th", { scope: "col", lang: languages[1] }, element("span", { textContent }))));
  const body = rows.map((row, t) => element("tr", {}, element("th", { scope: "row", textContent: row, lang: languages[0] }), ...columns.map((column, s) => {
    if (view === "difference" && t >= same) return element("td", { textContent: "·", title: "other words were written before" });
    const x = weight(shown, t, s) - (view === "difference" ? weight(before, t, s) : 0), percent = Math.round(100 * x);
    const isShown = view === "difference" ? percent !== 0 : x >= 0.095;
    const sign = view === "difference" && percent > 0 ? "+" : "";
    const cell = element("td", { textContent: isShown ? `${sign}${number(100 * x, 0)}` : "", title: `${row} looks at ${column}: ${sign}${number(100 * x, 1)} %` });
    cell.classList.toggle("less", x <= -0.0005);
    cell.style.setProperty("--weight", Math.min(1, Math.abs(x) * (view === "difference" ? 2 : 1)).toFixed(3)); // Differences are small.
    return cell;
  })));
  $("attention").replaceChildren(element("thead", {}, top), element("tbody", {}, ...body));
  const notes = {
    after: "How much each row looks at each column, in percent, with your changes.",
    before: "How much each row looks at each column, in percent, in the unchanged model.",
    difference: "Percent with your changes minus percent without; rows with other words before them cannot be compared.",
  };
  $("attention-note").textContent = notes[view];
  $("key-dim").textContent = before.keyDim;
  const size = (name, length, of) => `${name}: ${length} × ${before.keyDim}${of}`;
  $("sizes").textContent = `One head of this model has ${before.keyDim} dimensions. ${size("Q", rows.length, ", a row for each row of the table")}; ${size("K and V", columns.length, ", a row for each column")}.`;
  const factors = range(heads).map((head) => Number(boxes().find(({ dataset }) => dataset.kind === kind && Number(dataset.layer) === layer && Number(dataset.head) === head).checked));
  $("of-heads").textContent = `${KINDS[kind]}, layer ${layer + 1}`;
  $("count").textContent = heads;
  $("factors").textContent = factors.join(", ");
}

// The page.

async function load() {
  const list = await fetch("models.json").then((answer) => answer.json()).catch(() => {
    throw new Error("The list of models, models.json, cannot be used. The page Translator says why.");
  });
  const [model] = list.models, { createTranslator, languageName } = await import("./translator.js");
  $("progress").hidden = false;
  $("status").textContent = "Loading the model …";
  translator = await createTranslator(model.folder, { onProgress: ({ loaded }) => ($("progress").value = Math.min(1, loaded / model.bytes)) });
  const { target_language, source_language, settings } = translator.settings, codes = translator.languages;
  $("progress").hidden = true;
  $("into").hidden = codes.length < 2;
  if (codes.length > 1) $("language").replaceChildren(...codes.map((code) => new Option(languageName(code), code, false, code === target_language)));
  $("text").lang = tagged(source_language);
  $("beams").max = Math.max(MOST_BEAMS, settings.num_beams);
  const steps = Math.round(10 * settings.length_penalty); // The value of the model is one of the range's values.
  Object.assign($("penalty"), { step: 0.1, min: settings.length_penalty - 0.1 * Math.max(steps, 0), max: settings.length_penalty + 0.1 * Math.max(20 - steps, 0) });
  $("translate").disabled = false;
}

/** What a control that was used has changed, in words. */
function said(control) {
  const { dataset } = control;
  if (dataset.head !== undefined || dataset.all !== undefined) return `${control.ariaLabel}: ${control.checked ? "on" : "off"}.`;
  if (control.tagName === "BUTTON") return `“${control.textContent}” is ${control.ariaPressed === "true" ? "hidden" : "shown"}.`;
  if (!control.value) return "";
  return `${control.ariaLabel ?? control.labels[0].firstChild.textContent.trim()}: ${control.value}.`;
}

async function start() {
  $("translate").disabled = $("reset").disabled = true; // Firefox remembers them when a page is loaded again.
  try {
    await load();
  } catch (error) {
    return problem(error.message);
  }
  options($("kind"), Object.entries(KINDS).reverse());
  options($("view"), Object.entries(VIEWS));
  const given = new URLSearchParams(location.hash.slice(1));
  $("text").value = given.get("text") ?? "";
  if (given.get("to")) $("language").value = given.get("to");
  const update = (control) => {
    if (control.tagName === "INPUT" && !control.reportValidity()) return;
    settle();
    void run(said(control));
  };
  $("form").onsubmit = (event) => {
    event.preventDefault();
    void run("");
  };
  $("language").onchange = () => void run("");
  $("heads").onchange = ({ target }) => {
    if (target.dataset.all !== undefined) for (const box of target.closest("tr").querySelectorAll("[data-head]")) box.checked = target.checked;
    const { kind, layer } = target.closest("tr").querySelector("[data-head]").dataset;
    $("kind").value = kind; // The other cards show what was changed.
    layChoices();
    $("layer").value = layer;
    update(target);
  };
  $("pieces").onclick = ({ target }) => {
    if (target.tagName !== "BUTTON") return;
    target.ariaPressed = String(target.ariaPressed !== "true");
    update(target);
  };
  $("pieces").onchange = ({ target }) => update(target);
  for (const id of ["shift", "beams", "penalty"]) $(id).onchange = ({ target }) => update(target);
  $("penalty").oninput = settle;
  for (const id of ["kind", "layer", "head", "view"]) $(id).onchange = showAttention;
  $("reset").onclick = () => {
    setControls();
    $("text").focus(); // The button is disabled then.
    void run("All changes are undone.");
  };
  window.onhashchange = () => location.reload(); // Another link was followed in this tab.
  await run("");
}

void start();
