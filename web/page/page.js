/** The page: sends typed text to the worker and shows the worker's answers. */

"use strict";

const $ = (id) => document.getElementById(id);
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
const ms = (x) => `${x < 10 ? x.toFixed(1) : Math.round(x)} ms`;

const calls = new Map();
let worker, broken, count = 0, longest, shown, attention, models, loading;

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
    longest = loaded.longest;
    model.seconds = loaded.seconds;
    $("status").textContent = "Ready.";
    $("translate").disabled = false;
    times();
    await countTokens();
    if (shown) await translate();
  } catch (error) {
    if (mine === loading) problem(error.message);
  } finally {
    if (mine === loading) bar.hidden = true;
  }
}

async function countTokens() {
  if (longest === undefined) return;
  const text = $("source").value;
  const tokens = await ask("count", { text });
  if (text !== $("source").value) return;
  const over = tokens > longest;
  $("count").textContent = `${tokens} of ${longest} tokens${over ? ": too long, the end will not be translated" : ""}`;
  $("count").classList.toggle("over", over);
}

async function translate() {
  if ($("translate").disabled) return;
  const text = $("source").value;
  problem("");
  document.body.dataset.state = "busy";
  $("status").textContent = "Translating …";
  $("translation").classList.add("unfinished");
  try {
    const result = await ask("translate", { text }, (progress) => ($("translation").textContent = progress.text));
    if (result.superseded) return;
    shown = result.empty ? undefined : result;
    $("results").hidden = !shown;
    if (shown) {
      hypotheses(0);
      picture(result.attention);
    } else show("");
    times();
    const cut = result.truncated ? ` Only the first ${longest} tokens were translated.` : "";
    $("status").textContent = `Done.${cut}`;
    document.body.dataset.state = "done";
  } catch (error) {
    problem(error.message);
    document.body.dataset.state = "failed";
  }
}

/** Shows a finished translation. */
function show(text) {
  $("translation").textContent = text;
  $("translation").classList.remove("unfinished");
  $("copy").disabled = !text;
}

/** Shows the list of hypotheses, and one of them as the translation. */
function hypotheses(chosen) {
  show(shown.hypotheses[chosen].text);
  const rows = shown.hypotheses.map(({ text, score, ids }, i) => {
    const button = element("button", { type: "button", ariaPressed: String(i === chosen) });
    button.append(element("span", { textContent: text, dir: "auto" }), element("span", { className: "score", textContent: score.toFixed(3) }));
    button.onclick = async () => {
      const mine = shown;
      hypotheses(i);
      $("hypotheses").children[i].firstChild.focus();
      try {
        const found = await ask("attention", { source: shown.ids, target: ids });
        if (mine === shown && $("hypotheses").children[i].firstChild.ariaPressed === "true") picture(found);
      } catch (error) {
        problem(error.message);
      }
    };
    const row = element("li");
    row.append(button);
    return row;
  });
  $("hypotheses").replaceChildren(...rows);
}

/** Draws the cross-attention as a table, so that a screen reader can read it, too. */
function picture(found) {
  attention = found;
  if ($("layer").length === 0) { // All models of a site have the same layers.
    const numbers = (count) => Array.from({ length: count }, (_, i) => i + 1);
    // The second-to-last layer aligns best: "Jointly Learning to Align and Translate with Transformer Models" (2019).
    options($("layer"), numbers(found.layers), Math.max(found.layers - 2, 0));
    options($("head"), ["all, averaged", ...numbers(found.heads)], 0);
  }
  const chosen = attention.scores[$("layer").value], head = Number($("head").value);
  const weight = (t, s) => {
    const of = head === 0 ? chosen : [chosen[head - 1]];
    return of.reduce((sum, rows) => sum + rows[t][s], 0) / of.length;
  };
  const top = element("tr");
  top.append(element("td"), ...attention.source.map((piece) => element("th", { scope: "col", textContent: piece })));
  top.firstChild.style.border = 0;
  const rows = attention.target.map((piece, t) => {
    const row = element("tr");
    row.append(element("th", { scope: "row", textContent: piece }));
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
    const kind = shown.hypotheses.length > 1 ? "beam search" : "search";
    parts.push(`token by token ${ms(greedy)}`, `${kind} ${ms(search)}`, `attention ${ms(attention)}`);
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
  $("source").oninput = () => void countTokens().catch((error) => problem(error.message));
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
    await navigator.clipboard.writeText($("translation").textContent);
    $("status").textContent = "Copied.";
  };
  if (navigator.platform.startsWith("Mac")) $("hint").textContent = "⌘ + Enter";
  await load();
}

void start();
