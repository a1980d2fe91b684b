(() => {
  // src/page.js
  var $ = (id) => document.getElementById(id);
  var percent = (x) => Math.round(100 * x);
  var megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  var ms = (x) => `${x < 10 ? x.toFixed(1) : Math.round(x)} ms`;
  var calls = /* @__PURE__ */ new Map();
  var worker;
  var broken;
  var count = 0;
  var longest;
  var shown;
  var attention;
  var models;
  var loading;
  function ask(kind, content = {}, onProgress = () => {
  }) {
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
      if (progress !== void 0) return call?.onProgress(progress);
      calls.delete(id);
      if (error !== void 0) call.reject(new Error(error));
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
    const mine = loading = {};
    problem("");
    $("translate").disabled = true;
    bar.hidden = false;
    bar.removeAttribute("value");
    $("status").textContent = `Loading ${model.name}, ${megabytes(model.bytes)} …`;
    try {
      const loaded = await ask("load", { folder: model.folder }, ({ loaded: loaded2 }) => bar.value = Math.min(1, loaded2 / model.bytes));
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
    if (longest === void 0) return;
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
      const result = await ask("translate", { text }, (progress) => $("translation").textContent = progress.text);
      if (result.superseded) return;
      shown = result.empty ? void 0 : result;
      $("results").hidden = !shown;
      if (shown) {
        attention = void 0;
        hypotheses(0);
        picture(result.attention);
      } else $("translation").textContent = "";
      times();
      const cut = result.truncated ? ` Only the first ${longest} tokens were translated.` : "";
      $("status").textContent = `Done.${cut}`;
      document.body.dataset.state = "done";
    } catch (error) {
      problem(error.message);
      document.body.dataset.state = "failed";
    }
  }
  function hypotheses(chosen) {
    $("translation").textContent = shown.hypotheses[chosen].text;
    $("translation").classList.remove("unfinished");
    $("copy").disabled = !shown.hypotheses[chosen].text;
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
  function picture(found) {
    const { layers, heads } = found;
    if (!attention) {
      options($("layer"), Array.from({ length: layers }, (_, i) => `${i + 1}`), $("layer").value || Math.max(layers - 2, 0));
      options($("head"), ["all, averaged", ...Array.from({ length: heads }, (_, i) => `${i + 1}`)], $("head").value || 0);
    }
    attention = found;
    const chosen = attention.scores[$("layer").value], head = Number($("head").value);
    const weight = (t, s) => {
      const of = head === 0 ? chosen : [chosen[head - 1]];
      return of.reduce((sum, rows2) => sum + rows2[t][s], 0) / of.length;
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
          textContent: percent(x) >= 10 ? percent(x) : "",
          title: `${piece} looks at ${from}: ${(100 * x).toFixed(1)} %`
        });
        cell.style.setProperty("--weight", x.toFixed(3));
        row.append(cell);
      });
      return row;
    });
    const head_ = element("thead"), body = element("tbody");
    head_.append(top);
    body.append(...rows);
    $("attention").replaceChildren(head_, body);
  }
  function times() {
    const model = models[$("model").value];
    const parts = [`${model.name}: ${megabytes(model.bytes)}, loaded in ${model.seconds.toFixed(1)} s`];
    if (shown) {
      const { greedy, search, attention: attention2 } = shown.times;
      const kind = shown.hypotheses.length > 1 ? "beam search" : "search";
      parts.push(`token by token ${ms(greedy)}`, `${kind} ${ms(search)}`, `attention ${ms(attention2)}`);
    }
    $("timing").textContent = parts.join(" · ");
  }
  function element(name, properties = {}) {
    return Object.assign(document.createElement(name), properties);
  }
  function options(select, names, chosen) {
    select.replaceChildren(...names.map((name, i) => new Option(name, i)));
    select.value = Math.min(Number(chosen), names.length - 1);
  }
  async function start() {
    const lack = missing();
    if (lack) return problem(lack);
    startWorker();
    try {
      const answer = await fetch("models.json");
      if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
      const content = await answer.json();
      models = content.models;
      document.title = document.querySelector("h1").textContent = `Translator: ${content.name}`;
    } catch (error) {
      return problem(`The list of models, models.json, could not be loaded (${error.message}).`);
    }
    options($("model"), models.map((model) => `${model.name} (${megabytes(model.bytes)})`), 0);
    $("model").onchange = load;
    $("source").oninput = () => void countTokens();
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
})();
