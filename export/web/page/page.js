/** The page: sends typed text to the worker and shows the worker's answers. */

"use strict";

const $ = (id) => document.getElementById(id);
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
const ms = (x) => `${x < 10 ? x.toFixed(1) : Math.round(x)} ms`;

const calls = new Map();
// What makes a pasted text a formatted one; other text is pasted as usual.
const FORMATTED = "a[href], b, strong, i, em, u, s, sub, sup, mark, code, pre, blockquote, h1, h2, h3, h4, h5, h6, li, td, th";
// What is kept of pasted elements. Colours are not: those of most pages are black on white, and this one may be dark.
const ATTRIBUTES = new Set("alt border cite class colspan dir headers height hidden href lang open reversed rowspan scope span src start title translate type value width".split(" "));
const STYLES = ["font-style", "font-weight", "text-decoration-line", "vertical-align"]; // Of bold words in some editors.
const DOUBT = 0.5; // Words with less confidence are underlined.
const TRANSLATED = ["translation", "rich-translation", "hypotheses"];
let rich = null; // The body of a pasted text with formatting, and the same text without it.
let worker, broken, count = 0, shown, current = 0, attention, models, loading;

/** Sends a request to the worker; `onProgress` is called with each progress message before the answer. */
function ask(kind, content = {}, onProgress = () => {}) {
  if (broken) return Promise.reject(broken);
  return new Promise((resolve, reject) => {
    calls.set(++count, { resolve, reject, onProgress });
    worker.postMessage({ id: count, kind, ...content });
  });
}

function startWorker() {
  worker = new Worker("worker.js");
  worker.onmessage = ({ data: { id, progress, result, error } }) => {
    const call = calls.get(id);
    if (progress !== undefined) return call?.onProgress(progress); // After an error there is no call any more.
    calls.delete(id);
    if (error !== undefined) call.reject(new Error(error));
    else call.resolve(result);
  };
  worker.onerror = (event) => {
    broken = new Error(`The translator stopped: ${event.message || "its script could not be loaded"}.`);
    for (const { reject } of calls.values()) reject(broken);
    calls.clear();
  };
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

/** A message about what this browser lacks, or an empty string. */
function missing() {
  if (location.protocol === "file:") {
    return "Browsers do not load models from a file. Serve this folder: python3 -m http.server --directory FOLDER, then open http://localhost:8000.";
  }
  const simd = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11);
  const found = typeof Worker === "function" && typeof WebAssembly === "object" && WebAssembly.validate(simd);
  return found ? "" : "This browser is too old: translating needs web workers and WebAssembly with SIMD, as in Chrome 91, Firefox 89 or Safari 16.4 and later.";
}

async function load() {
  const model = models[$("model").value], bar = $("progress");
  const mine = (loading = {}); // To notice if another model is chosen while this one loads.
  problem("");
  $("translate").disabled = true;
  bar.hidden = false;
  bar.removeAttribute("value");
  $("status").textContent = `Loading ${model.name}, ${megabytes(model.bytes)} …`;
  try {
    const loaded = await ask("load", { folder: model.folder }, ({ loaded }) => (bar.value = Math.min(1, loaded / model.bytes)));
    if (mine !== loading) return;
    model.seconds = loaded.seconds;
    model.markup = loaded.settings.markup;
    languages(loaded.settings);
    $("status").textContent = "Ready.";
    $("translate").disabled = false;
    times();
    await countTokens();
    if (shown || rich) await translate();
  } catch (error) {
    if (mine === loading) problem(error.message);
  } finally {
    if (mine === loading) bar.hidden = true;
  }
}

/** Names the languages, and fills the list of target languages, if the model has several. Another model keeps the choice. */
function languages({ languages, source_language, target_language, translation_language }) {
  const codes = Object.keys(languages), chosen = codes.includes($("language").value) ? $("language").value : target_language;
  $("into").hidden = !target_language || codes.length < 2;
  $("language").replaceChildren(...($("into").hidden ? [] : codes.map((code) => new Option(languageName(code), code))));
  $("language").value = chosen;
  const titles = { source: ["Source", source_language], translation: ["Translation", $("into").hidden && translation_language] };
  for (const [id, [title, code]] of Object.entries(titles)) {
    document.querySelector(`label[for="${id}"]`).textContent = code ? languageName(code) : title;
  }
  speak(["source", "mirror", "rich"], source_language);
  speak(TRANSLATED, $("into").hidden ? translation_language : chosen);
}

/** Says to screen readers in which language texts are; without a code it is unknown, and not that of the page. */
function speak(ids, code) {
  for (const id of ids) $(id).lang = code?.replaceAll("_", "-") ?? "";
}

function languageName(code) {
  try {
    return new Intl.DisplayNames("en", { type: "language" }).of(code.replaceAll("_", "-"));
  } catch {
    return code; // Not a code of a language.
  }
}

/** The chosen target language, or undefined for the model's own. */
const language = () => $("language").value || undefined;

/** Whether there is a translation, but of another text than that in the text area, is seen and said. */
function compare() {
  if (document.body.dataset.state !== "done") return;
  const old = shown !== undefined && shown.text !== $("source").value;
  $("translation").classList.toggle("unfinished", old);
  $("copy").disabled = old || !shown;
  $("status").textContent = old ? "The text has changed." : shown ? "Done." : "Ready.";
}

async function countTokens() {
  if (models[$("model").value].seconds === undefined) return; // Not loaded yet.
  const { superseded, sentences, tokens } = await ask("count", { text: $("source").value });
  const some = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
  if (!superseded) $("count").textContent = `${some(sentences, "sentence")}, ${some(tokens, "token")}`;
}

async function translate() {
  if ($("translate").disabled) return;
  if (rich) return translateRich();
  const text = $("source").value;
  problem("");
  document.body.dataset.state = "busy";
  $("status").textContent = "Translating …";
  $("translation").classList.add("unfinished");
  try {
    let number = 0;
    const result = await ask("translate", { text, language: language() }, ({ parts, index, text, hypothesis, done }) => {
      if (parts) {
        number = (parts.length - 1) / 2;
        lay($("mirror"), parts);
        lay($("translation"), parts.map((part, i) => (i % 2 ? "" : part)));
      } else if (hypothesis) fill(sentence($("translation"), index), hypothesis);
      else sentence($("translation"), index).textContent = text;
      if (done && number > 1) $("status").textContent = `Translating … ${index + 1} of ${number}`;
    });
    if (result.superseded) return;
    shown = result.sentences.length ? { ...result, text } : undefined;
    $("results").hidden = !shown;
    if (shown) {
      for (const one of shown.sentences) one.chosen = 0;
      const best = shown.sentences.map(({ hypotheses }) => hypotheses[0].text);
      lay($("translation"), shown.separators.flatMap((separator, i) => (i < best.length ? [separator, best[i]] : [separator])));
      for (const [i, one] of shown.sentences.entries()) fill(sentence($("translation"), i), one.hypotheses[0]);
      await select(0);
    }
    times();
    document.body.dataset.state = "done";
    compare();
  } catch (error) {
    problem(error.message);
    document.body.dataset.state = "failed";
  }
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
  $("results").hidden = $("doubt").hidden = $("copy").disabled = true;
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
async function translateRich() {
  problem("");
  document.body.dataset.state = "busy";
  $("status").textContent = "Translating …";
  const mine = rich, copy = rich.body.cloneNode(true);
  try {
    const languages = [$("source").lang, $("translation").lang];
    const superseded = await translateMarkup(copy, models[$("model").value].markup, languages, async (texts) => {
      const answer = await ask("align", { texts, language: language() }, (index) => ($("status").textContent = `Translating … ${index} of ${texts.length}`));
      return answer.superseded ? null : answer;
    });
    if (superseded || mine !== rich) return;
    show($("rich-translation"), copy);
    $("copy").disabled = false;
    $("status").textContent = "Done.";
    document.body.dataset.state = "done";
  } catch (error) {
    problem(error.message);
    document.body.dataset.state = "failed";
  }
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
  place.replaceChildren(...nodes);
  $("doubt").hidden = !$("translation").querySelector(".doubtful");
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
  $("doubt").hidden = !$("translation").querySelector(".doubtful");
  const mean = words.reduce((sum, [, , confidence]) => sum + confidence, 0) / words.length;
  place.title = words.length ? `${percent(mean)} of these words are likely to be right` : "";
}

const sentence = (place, index) => place.querySelectorAll(".sentence")[index];

/** Marks a sentence on both sides, or none. */
function mark(index) {
  for (const one of document.querySelectorAll(".sentence.marked")) one.classList.remove("marked");
  if (index === undefined || !$("translation").querySelector("[role]")) return;
  for (const place of [$("mirror"), $("translation")]) sentence(place, index)?.classList.add("marked");
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
  sentence($("translation"), index).classList.toggle("current", several);
  $("chosen").textContent = `Sentence ${index + 1}: ${shown.sentences[index].source}`;
  $("chosen").hidden = !several;
  hypotheses(shown.sentences[index].chosen);
  await look();
}

/** Draws the attention of the chosen hypothesis. */
async function look() {
  const mine = shown.sentences[current], chosen = mine.chosen, hypothesis = mine.hypotheses[chosen];
  if (!hypothesis.ids.length) return $("attention").replaceChildren();
  const began = performance.now();
  const found = await ask("attention", { source: mine, hypothesis });
  hypothesis.words = found.words;
  if (mine !== shown?.sentences[current] || chosen !== mine.chosen) return;
  shown.times.attention ??= performance.now() - began;
  fill(sentence($("translation"), current), hypothesis);
  picture(found);
}

/** Shows the list of hypotheses of the current sentence, and one of them in the translation. */
function hypotheses(chosen) {
  const mine = shown.sentences[current];
  mine.chosen = chosen;
  fill(sentence($("translation"), current), mine.hypotheses[chosen]);
  const rows = mine.hypotheses.map(({ text, score }, i) => {
    const button = element("button", { type: "button", ariaPressed: String(i === chosen) });
    button.append(element("span", { textContent: text, dir: "auto" }), element("span", { className: "score", textContent: score.toFixed(3) }));
    button.onclick = () => {
      hypotheses(i);
      $("hypotheses").children[i].firstChild.focus();
      void look().catch((error) => problem(error.message));
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
  top.append(element("td"), ...attention.source.map((piece) => element("th", { scope: "col", textContent: piece, lang: $("source").lang })));
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
  const lack = missing();
  if (lack) return problem(lack);
  startWorker();
  try {
    const answer = await fetch("models.json");
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    const content = await answer.json();
    check(content);
    models = content.models;
    document.title = document.querySelector("h1").textContent = `Translator: ${content.name}`;
  } catch (error) {
    return problem(`The list of models, models.json, cannot be used (${error.message}). Export the page again.`);
  }
  options($("model"), models.map((model) => `${model.name} (${megabytes(model.bytes)})`), 0);
  $("model").onchange = load;
  $("language").onchange = () => {
    speak(TRANSLATED, language());
    if (shown || rich) void translate();
  };
  $("source").oninput = () => {
    $("mirror").replaceChildren(); // Its sentences are those of the text before.
    if (!$("source").value) void translate(); // Of nothing: the old translation goes.
    compare();
    void countTokens().catch((error) => problem(error.message));
  };
  $("source").onpaste = paste;
  $("plain").onclick = () => {
    $("source").value = rich.text;
    keep(null);
    $("source").focus();
    void countTokens().then(translate).catch((error) => problem(error.message));
  };
  $("source").onscroll = () => ($("mirror").scrollTop = $("source").scrollTop);
  for (const id of ["source", "translation"]) {
    $(id).onpointermove = (event) => mark(under(event));
    $(id).onpointerleave = () => mark();
  }
  const choose = (event) => {
    const index = event.target.closest("[role]")?.dataset.sentence;
    if (index !== undefined) void select(Number(index)).catch((error) => problem(error.message));
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
  $("copy").onclick = async () => {
    if (rich) {
      const { innerHTML, textContent } = $("rich-translation").shadowRoot;
      const kinds = { "text/html": innerHTML, "text/plain": textContent };
      const blobs = Object.entries(kinds).map(([type, content]) => [type, new Blob([content], { type })]);
      await navigator.clipboard.write([new ClipboardItem(Object.fromEntries(blobs))]);
    } else await navigator.clipboard.writeText($("translation").textContent);
    $("status").textContent = "Copied.";
  };
  if (navigator.platform.startsWith("Mac")) $("hint").textContent = "⌘ + Enter";
  await load();
  // After the first model, so that the worker finds files in the browser's own cache. The page also works without it.
  navigator.serviceWorker?.register("service-worker.js").catch(() => {});
}

void start();
