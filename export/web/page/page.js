/** The page: translates typed text with `translator.js`, and shows what that says. */

"use strict";

const $ = (id) => document.getElementById(id);
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
const ms = (x) => `${x < 10 ? x.toFixed(1) : Math.round(x)} ms`;

// What makes a pasted text a formatted one; other text is pasted as usual.
const FORMATTED = "a[href], b, strong, i, em, u, s, sub, sup, mark, code, pre, blockquote, h1, h2, h3, h4, h5, h6, li, td, th";
// What is kept of pasted elements. Colours are not: those of most pages are black on white, and this one may be dark.
const ATTRIBUTES = new Set("alt border cite class colspan dir headers height hidden href lang open reversed rowspan scope span src start title translate type value width".split(" "));
const STYLES = ["font-style", "font-weight", "text-decoration-line", "vertical-align"]; // Of bold words in some editors.
const DOUBT = 0.5; // Words with less confidence are underlined.
const TRANSLATED = ["translation", "rich-translation", "hypotheses"];
let rich = null; // The body of a pasted text with formatting, and the same text without it.
const newest = {}; // The AbortController of the newest work of each kind.
// What people call the models that an export makes, most of all the two that it makes by default.
const NAMES = { float32: "Exact", float16: "Medium", int8: "Small", "int8-per-channel": "Small, more exact" };
let createTranslator, languageName, siteName, models, translator, directions, direction, shown, current = 0, attention;

/** A signal for work of a kind; earlier work of this kind is aborted. */
function signalFor(kind) {
  newest[kind]?.abort();
  newest[kind] = new AbortController();
  return newest[kind].signal;
}

/** Shows an error, unless it says that newer work has taken the place of this one; returns whether it was shown. */
function failed(error) {
  const real = error.name !== "AbortError";
  if (real) problem(error.message);
  return real;
}

function problem(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
  if (text) $("status").textContent = "";
}

/** Throws an error if the content of models.json is not what the export writes. */
function check(content) {
  const right = (model) => typeof model?.name === "string" && typeof model.folder === "string" && model.bytes > 0;
  const whole = typeof content?.name === "string" && Array.isArray(content.models) && content.models.length > 0;
  if (!whole || !content.models.every(right)) throw new Error("it must have a name, and models with name, folder and bytes");
}

async function load() {
  const model = models[$("model").value], bar = $("progress"), signal = signalFor("load"), began = performance.now();
  translator?.close();
  translator = undefined;
  problem("");
  $("translate").disabled = true;
  bar.hidden = false;
  bar.removeAttribute("value");
  $("status").textContent = `Loading the model, ${megabytes(model.bytes)} …`;
  try {
    const onProgress = ({ loaded }) => (bar.value = Math.min(1, loaded / model.bytes));
    translator = await createTranslator(model.folder, { onProgress, signal });
    model.seconds = (performance.now() - began) / 1000;
    if (!directions) languages();
    $("status").textContent = "Ready.";
    $("translate").disabled = $("link").disabled = false;
    times();
    await countTokens();
    if (shown || rich || document.body.dataset.state === "busy") await translate();
  } catch (error) {
    if (failed(error)) document.body.dataset.state = "failed";
  } finally {
    if (!signal.aborted) bar.hidden = true;
  }
}

/** Fills the list of directions. All models of a site have the same. */
function languages() {
  directions = translator.directions;
  const isOne = new Set(directions.map(({ source }) => source)).size === 1;
  const nameOf = ({ source, target }) => (isOne || !source ? languageName(target) : `${languageName(source)} to ${languageName(target)}`);
  $("languages").hidden = directions.length < 2;
  if (directions.length > 1) options($("direction"), directions.map(nameOf), 0);
  $("swap").hidden = !directions.some(backOf);
  turn(linked() ?? directions.find(({ target }) => target === translator.settings.target_language) ?? directions[0]);
}

/** The direction back, if the model has it. */
const backOf = ({ source, target }) => directions.find((one) => one.source === target && one.target === source);

/** Translates in a direction from now on, and names its languages. */
function turn(to) {
  direction = to;
  $("direction").value = directions.indexOf(to);
  $("swap").disabled = !backOf(to);
  const [from, into] = [to.source, to.target].map((code) => code && languageName(code));
  document.querySelector("h1").textContent = from && into ? `${from} to ${into}` : siteName;
  document.title = `${document.querySelector("h1").textContent} translator`;
  document.querySelector('label[for="source"]').textContent = from || "Source";
  document.querySelector('label[for="translation"]').textContent = into || "Translation";
  speak(["source", "mirror", "rich"], to.source);
  speak(TRANSLATED, to.target);
}

/** Turns the direction; a translation of the present text becomes the source. */
function swap() {
  const isTranslated = !$("copy").disabled;
  turn(backOf(direction));
  if (isTranslated && rich) keep({ body: rich.translation, text: rich.translation.textContent });
  else if (isTranslated) $("source").value = $("translation").textContent;
  again();
}

/** What the address says after `#`, such as `text=A+dog.&from=en&to=de`: a server never gets it. */
const link = () => new URLSearchParams(location.hash.slice(1));

/** The direction that the address asks for, if the model has it. */
function linked() {
  const into = directions.filter(({ target }) => target === link().get("to"));
  return into.find(({ source }) => source === link().get("from")) ?? into[0];
}

/** Translates the text of the address, now or when the model is loaded. */
function follow() {
  if (!link().has("text")) return;
  keep(null);
  $("copy").disabled = true;
  $("translation").classList.add("unfinished");
  $("source").value = link().get("text");
  document.body.dataset.state = "busy";
  if (directions) turn(linked() ?? direction);
  if (translator) again();
}

/** Counts the tokens of another text, and translates it. */
function again() {
  $("mirror").replaceChildren(); // Its sentences are those of the text before.
  void countTokens().catch(failed);
  void translate(); // At once: it ends the translation before, for which the count waits.
}

/** Says to screen readers in which language texts are; without a code it is unknown, and not that of the page. */
function speak(ids, code) {
  for (const id of ids) $(id).lang = code?.replaceAll("_", "-") ?? "";
}

/** Whether there is a translation, but of another text than that in the text area, is seen and said. */
function compare() {
  if (document.body.dataset.state !== "done") return;
  const old = shown !== undefined && shown.of !== $("source").value;
  $("translation").classList.toggle("unfinished", old);
  $("copy").disabled = old || !(shown || rich);
  $("status").textContent = old ? "The text has changed." : shown || rich ? "Done." : "Ready.";
}

async function countTokens() {
  const found = await translator?.count($("source").value, { signal: signalFor("count") }); // None while a model is loaded.
  const some = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
  if (found) $("count").textContent = `${some(found.sentences, "sentence")}, ${some(found.tokens, "token")}`;
}

async function translate() {
  if ($("translate").disabled) return;
  problem("");
  document.body.dataset.state = "busy";
  $("copy").disabled = true;
  $("status").textContent = "Translating …";
  const signal = signalFor("translation");
  try {
    await (rich ? translateRich : translateText)({ targetLanguage: direction.target, signal });
    if (signal.aborted) return;
    document.body.dataset.state = "done";
    compare();
  } catch (error) {
    if (failed(error)) document.body.dataset.state = "failed";
  }
}

async function translateText(options) {
  const text = $("source").value;
  $("translation").classList.add("unfinished");
  const result = await translator.translate(text, { ...options, onProgress({ parts, index, sentence, hypothesis }) {
    if (index === undefined) {
      lay($("mirror"), parts);
      lay($("translation"), parts.map((part, i) => (i % 2 ? "" : part)));
    } else if (hypothesis) fill(sentenceOf($("translation"), index), hypothesis);
    else sentenceOf($("translation"), index).textContent = sentence;
    if (hypothesis && parts.length > 3) $("status").textContent = `Translating … ${index + 1} of ${(parts.length - 1) / 2}`;
  } });
  shown = result.sentences.length ? result : undefined;
  $("results").hidden = !shown;
  if (shown) {
    for (const one of shown.sentences) one.chosen = 0;
    const best = shown.sentences.map(({ hypotheses }) => hypotheses[0].text);
    lay($("translation"), shown.separators.flatMap((separator, i) => (i < best.length ? [separator, best[i]] : [separator])));
    for (const [i, one] of shown.sentences.entries()) fill(sentenceOf($("translation"), i), one.hypotheses[0]);
    shown.of = text;
    await select(0);
  }
  times();
}

/** Keeps a pasted text with its formatting, or, with null, goes back to the text area. */
function keep(pasted) {
  rich = pasted;
  $("source").parentElement.hidden = $("translation").hidden = $("count").hidden = rich !== null;
  $("rich").hidden = $("rich-translation").hidden = $("plain").hidden = rich === null;
  if (rich === null) return;
  show($("rich"), rich.body);
  show($("rich-translation"), document.createElement("body"));
  shown = undefined;
  $("results").hidden = $("copy").disabled = true;
}

/** Shows a copy of what is in a node, apart from the page's own names and styles; no script of it runs. */
function show(place, node) {
  const root = place.shadowRoot ?? place.attachShadow({ mode: "open" });
  root.replaceChildren(...node.cloneNode(true).childNodes);
}

function paste(event) {
  const html = event.clipboardData.getData("text/html");
  const body = html && new DOMParser().parseFromString(html, "text/html").body;
  if (!body || !body.querySelector(FORMATTED)) return;
  for (const one of body.querySelectorAll("*")) tidy(one);
  event.preventDefault();
  keep({ body, text: event.clipboardData.getData("text/plain") });
  void translate();
}

/** Takes from a pasted element what could cover this page, hide the text or act; bold and italic by style are kept. */
function tidy(one) {
  const { style } = element("i");
  style.cssText = one.getAttribute("style") ?? ""; // The policy leaves the own style of a parsed element empty.
  for (const name of one.getAttributeNames()) if (!ATTRIBUTES.has(name)) one.removeAttribute(name);
  for (const name of STYLES) if (style[name]) one.style.setProperty(name, style.getPropertyValue(name));
}

/** Translates the pasted text and keeps its formatting. */
async function translateRich(options) {
  const copy = rich.body.cloneNode(true);
  const onProgress = ({ finished, total }) => ($("status").textContent = `Translating … ${finished} of ${total}`);
  await translator.translateMarkup(copy, { ...options, onProgress });
  rich.translation = copy;
  show($("rich-translation"), copy);
}

/** Fills an element with separators and sentences in turn. */
function lay(place, parts) {
  const choosable = place === $("translation") && parts.length > 3;
  const nodes = parts.map((part, i) => {
    if (i % 2 === 0) return document.createTextNode(part);
    const one = element("span", { className: "sentence", textContent: part });
    one.dataset.sentence = (i - 1) / 2;
    if (choosable) {
      one.setAttribute("role", "button");
      one.tabIndex = 0;
    }
    return one;
  });
  place.dir = ""; // With "auto", Chromium would look at all nodes again for each new one.
  place.replaceChildren();
  for (const node of nodes) place.append(node); // Too many for arguments.
  place.dir = "auto";
}

/** Fills an element with a translation. Words that may be wrong are underlined; their titles say how likely they are right. */
function fill(place, { text, words = [] }) {
  const nodes = [], percent = (x) => `${Math.round(100 * x)} %`;
  let end = 0;
  for (const [first, last, confidence] of words) {
    if (confidence >= DOUBT) continue;
    const word = element("span", { textContent: text.slice(first, last), title: `${percent(confidence)} likely to be right` });
    word.className = confidence < DOUBT / 2 ? "doubtful very" : "doubtful";
    nodes.push(document.createTextNode(text.slice(end, first)), word);
    end = last;
  }
  place.replaceChildren(...nodes, document.createTextNode(text.slice(end)));
  const mean = words.reduce((sum, [, , confidence]) => sum + confidence, 0) / words.length;
  place.title = words.length ? `${percent(mean)} of these words are likely to be right` : "";
}

const sentenceOf = (place, index) => place.children[index];

/** Marks a sentence on both sides, or none. */
function mark(index) {
  for (const one of document.querySelectorAll(".sentence.marked")) one.classList.remove("marked");
  if (index === undefined || !$("translation").querySelector("[role]")) return;
  for (const place of [$("mirror"), $("translation")]) sentenceOf(place, index)?.classList.add("marked");
}

/** The index of the sentence under the pointer. The one in the mirror is under the text area. */
function under(event) {
  const found = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.dataset.sentence !== undefined);
  return found && Number(found.dataset.sentence);
}

/** Shows the hypotheses and the attention of a sentence. */
async function select(index) {
  if (!shown?.sentences[index]) return;
  current = index;
  const several = shown.sentences.length > 1;
  $("translation").querySelector(".current")?.classList.remove("current");
  sentenceOf($("translation"), index).classList.toggle("current", several);
  $("chosen").textContent = `Sentence ${index + 1}: ${shown.sentences[index].source}`;
  $("chosen").hidden = !several;
  $("explain").href = `explain.html#${new URLSearchParams({ text: shown.sentences[index].source, ...(direction.target && { to: direction.target }) })}`;
  hypotheses(shown.sentences[index].chosen);
  await look();
}

/** Draws the attention of the chosen hypothesis. */
async function look() {
  const mine = shown.sentences[current], chosen = mine.chosen, hypothesis = mine.hypotheses[chosen];
  if (!translator) return; // Another model is being loaded.
  if (!hypothesis.ids.length) return $("attention").replaceChildren();
  const began = performance.now();
  const found = await translator.attention(mine, hypothesis);
  hypothesis.words = found.words;
  if (mine !== shown?.sentences[current] || chosen !== mine.chosen) return;
  shown.times.attention ??= performance.now() - began;
  fill(sentenceOf($("translation"), current), hypothesis);
  picture(found);
}

/** Shows the list of hypotheses of the current sentence, and one of them in the translation. */
function hypotheses(chosen) {
  const mine = shown.sentences[current];
  mine.chosen = chosen;
  fill(sentenceOf($("translation"), current), mine.hypotheses[chosen]);
  const rows = mine.hypotheses.map(({ text, score }, i) => {
    const button = element("button", { type: "button", ariaPressed: String(i === chosen) });
    button.append(element("span", { textContent: text, dir: "auto" }), element("span", { className: "score", textContent: score.toFixed(3) }));
    button.onclick = () => {
      hypotheses(i);
      $("hypotheses").children[i].firstChild.focus();
      void look().catch(failed);
    };
    const row = element("li");
    row.append(button);
    return row;
  });
  $("hypotheses").replaceChildren(...rows);
}

/**
 * The number of target pieces that are also the target piece with the largest weight of their source piece, for the
 * mean of some heads. It is largest for the layer that aligns best, as in Python's `Attention.mean_scores`.
 */
function agreement(heads, tags) {
  const weight = (t, s) => heads.reduce((sum, rows) => sum + rows[t][s], 0);
  const best = (values) => values.indexOf(Math.max(...values));
  const range = (length) => Array.from({ length }, (_, i) => i);
  // Tags and end tokens do not count.
  const target = range(heads[0].length - 1), source = range(heads[0][0].length - 1 - tags).map((s) => s + tags);
  const forward = target.map((t) => best(source.map((s) => weight(t, s))));
  const backward = source.map((s) => best(target.map((t) => weight(t, s))));
  return target.filter((t) => backward[forward[t]] === t).length;
}

/** Draws the cross-attention as a table, so that a screen reader can read it, too. */
function picture(found) {
  attention = found;
  if ($("layer").length === 0) { // All models of a site have the same layers.
    const numbers = (count) => Array.from({ length: count }, (_, i) => i + 1);
    const agreements = found.scores.map((heads) => agreement(heads, found.tags));
    options($("layer"), numbers(found.layers), agreements.indexOf(Math.max(...agreements)));
    options($("head"), ["all, averaged", ...numbers(found.heads)], 0);
  }
  const chosen = attention.scores[$("layer").value], head = Number($("head").value);
  const weight = (t, s) => {
    const of = head === 0 ? chosen : [chosen[head - 1]];
    return of.reduce((sum, rows) => sum + rows[t][s], 0) / of.length;
  };
  const top = element("tr");
  top.append(element("td"), ...attention.source.map((piece) => {
    const title = element("th", { scope: "col", lang: $("source").lang });
    title.append(element("span", { textContent: piece })); // WebKit turns it, but no cell of a table.
    return title;
  }));
  top.firstChild.style.border = 0;
  const rows = attention.target.map((piece, t) => {
    const row = element("tr");
    row.append(element("th", { scope: "row", textContent: piece, lang: $("translation").lang }));
    attention.source.forEach((from, s) => {
      const x = weight(t, s);
      const cell = element("td", {
        textContent: x >= 0.095 ? Math.round(100 * x) : "",
        title: `${piece} looks at ${from}: ${(100 * x).toFixed(1)} %`,
      });
      cell.style.setProperty("--weight", x.toFixed(3));
      row.append(cell);
    });
    return row;
  });
  const titles = element("thead"), body = element("tbody");
  titles.append(top);
  body.append(...rows);
  $("attention").replaceChildren(titles, body);
}

function times() {
  const model = models[$("model").value];
  const parts = [`${model.name}: ${megabytes(model.bytes)}, loaded in ${model.seconds.toFixed(1)} s`];
  if (shown) {
    const { greedy, search, attention } = shown.times;
    const kind = shown.sentences[0].hypotheses.length > 1 ? "beam search" : "search";
    if (greedy !== undefined) parts.push(`token by token ${ms(greedy)}`);
    if (search !== undefined) parts.push(`${kind} ${ms(search)}`);
    if (attention !== undefined) parts.push(`attention ${ms(attention)}`);
  }
  $("timing").textContent = parts.join(" · ");
}

function element(name, properties = {}) {
  return Object.assign(document.createElement(name), properties);
}

function options(select, names, chosen) {
  select.replaceChildren(...names.map((name, i) => new Option(name, i)));
  select.value = chosen;
}

async function start() {
  $("translate").disabled = $("copy").disabled = $("link").disabled = true; // Firefox remembers them when a page is loaded again.
  if (location.protocol === "file:") {
    return problem("Browsers do not load models from a file. Serve this folder: python3 -m http.server --directory FOLDER, then open http://localhost:8000.");
  }
  try {
    ({ createTranslator, languageName } = await import("./translator.js"));
  } catch (error) {
    return problem(`The translator, translator.js, could not be loaded (${error.message}). Export the page again.`);
  }
  try {
    const answer = await fetch("models.json");
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    const content = await answer.json();
    check(content);
    models = content.models.map((model) => ({ ...model, name: NAMES[model.name] ?? model.name }));
    siteName = content.name;
  } catch (error) {
    return problem(`The list of models, models.json, cannot be used (${error.message}). Export the page again.`);
  }
  options($("model"), models.map((model) => `${model.name}, ${megabytes(model.bytes)}`), 0);
  $("models").hidden = models.length < 2;
  $("model").onchange = load;
  $("direction").onchange = () => {
    turn(directions[$("direction").value]);
    if (shown || rich) void translate();
  };
  $("swap").onclick = swap;
  $("source").oninput = () => {
    $("mirror").replaceChildren(); // Its sentences are those of the text before.
    if (!$("source").value) void translate(); // Of nothing: the old translation goes.
    compare();
    void countTokens().catch(failed);
  };
  $("source").onpaste = paste;
  $("plain").onclick = () => {
    $("source").value = rich.text;
    keep(null);
    $("source").focus();
    again();
  };
  $("source").onscroll = () => ($("mirror").scrollTop = $("source").scrollTop);
  for (const id of ["source", "translation"]) {
    $(id).onpointermove = (event) => mark(under(event));
    $(id).onpointerleave = () => mark();
  }
  const choose = (event) => {
    const index = event.target.closest("[role]")?.dataset.sentence;
    if (index !== undefined) void select(Number(index)).catch(failed);
  };
  $("translation").onclick = choose;
  $("translation").onkeydown = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    if (event.target.closest("[role]")) event.preventDefault(); // Space would scroll.
    choose(event);
  };
  $("source").onkeydown = (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void translate();
  };
  $("form").onsubmit = (event) => {
    event.preventDefault();
    void translate();
  };
  for (const id of ["layer", "head"]) $(id).onchange = () => picture(attention);
  // Browsers have a clipboard for HTTPS and localhost alone, and may refuse it.
  const copied = async (write, said, otherwise) => ($("status").textContent = await write().then(() => said, otherwise));
  $("copy").onclick = () => copied(async () => {
    if (!rich) return navigator.clipboard.writeText($("translation").textContent);
    const { innerHTML, textContent } = $("rich-translation").shadowRoot;
    const kinds = { "text/html": innerHTML, "text/plain": textContent };
    const blobs = Object.entries(kinds).map(([type, content]) => [type, new Blob([content], { type })]);
    await navigator.clipboard.write([new ClipboardItem(Object.fromEntries(blobs))]);
  }, "Copied.", () => "This browser does not allow copying here. Select the text and copy it.");
  $("link").onclick = () => {
    const { source, target } = direction, text = rich ? rich.text : $("source").value;
    const content = new URLSearchParams({ text, ...(source && { from: source }), ...(target && { to: target }) });
    return copied(async () => navigator.clipboard.writeText(`${location.href.split("#")[0]}#${content}`), "The link is copied. It contains the text.", () => {
      history.replaceState(null, "", `#${content}`);
      return "Copy the link from the address bar. It contains the text.";
    });
  };
  window.onhashchange = follow;
  if (navigator.platform.startsWith("Mac")) $("hint").textContent = "⌘ + Enter";
  follow();
  await load();
  // After the first model, so that the worker finds files in the browser's own cache. The page also works without it.
  navigator.serviceWorker?.register("service-worker.js").catch(() => {});
}

void start();
