"use strict";
(async () => {
  const drawn = new Set();
  const wanted = { suite: "", method: "", k: "", beta: "" };

  // What is compressed is packed as gzip, in base64.
  async function unpacked(element) {
    if (element.type !== "application/gzip") return element.textContent;
    const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // "@ink" and "@c2/0.3" stand for the style sheet's colours, so that a chart follows the theme.
  function colour(token) {
    const [, name, opacity] = /^@([a-z]+\d*)(?:\/([\d.]+))?$/.exec(token) || [];
    const value = name && getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
    if (!value) return token;
    if (!opacity) return value;
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(value.slice(i, i + 2), 16));
    return `rgba(${r},${g},${b},${opacity})`;
  }

  function themed(value) {
    if (typeof value === "string") return value.startsWith("@") ? colour(value) : value;
    if (Array.isArray(value)) return value.map(themed);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, themed(item)]));
    }
    return value;
  }

  function axis(own) {
    const base = {
      fixedrange: true, gridcolor: "@grid", linecolor: "@line", zeroline: false, tickcolor: "@line",
      tickfont: { size: 12 }, color: "@quiet",
    };
    const title = own.title && { font: { size: 13 }, ...own.title };
    return { ...base, ...own, title };
  }

  function layoutOf(own) {
    return themed({
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: "@ink" },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      hovermode: "closest", dragmode: false, autosize: true,
      hoverlabel: { bgcolor: "@surface", bordercolor: "@line", font: { color: "@ink", size: 13 }, align: "left" },
      ...own, xaxis: axis(own.xaxis), yaxis: axis(own.yaxis),
    });
  }

  function draw(element) {
    const figure = figures[element.id];
    drawn.add(element);
    const shown = figure.data.filter((trace) => isWanted(trace.offsetgroup || trace.legendgroup));
    return Plotly.react(element, themed(shown), layoutOf(figure.layout), { displayModeBar: false, responsive: true });
  }

  // Traces of a method are grouped by its entry: "lop", or "lop (β = 0.1)".
  function isWanted(group) {
    const method = group && group.split(" (")[0];
    return !method || !wanted.method || method === wanted.method || method === "single";
  }

  // Whatever is tagged with something else than what was asked for is hidden.
  function applyFilters() {
    for (const name of Object.keys(wanted)) {
      for (const element of document.querySelectorAll(`[data-${name}]`)) {
        element.classList.toggle(`not-${name}`, Boolean(wanted[name]) && element.dataset[name] !== wanted[name]);
      }
    }
    for (const tab of document.querySelectorAll("[role=tab][id*='-shots-tab-']")) {
      if (wanted.k && tab.textContent === `K = ${wanted.k}`) select(tab);
    }
    for (const element of drawn) if (element.offsetParent !== null) draw(element);
    drawVisible();
  }

  // Where the paper's columns are hidden, a head above two columns is above one.
  function fitHeads(narrow) {
    for (const head of document.querySelectorAll("th[scope=colgroup]")) head.colSpan = narrow ? 1 : 2;
  }

  // A hidden chart has no width: it is drawn when its tab is opened.
  function drawVisible() {
    if (!window.Plotly) return;
    for (const element of document.querySelectorAll(".chart")) {
      if (element.offsetParent === null) continue;
      if (drawn.has(element)) Plotly.Plots.resize(element);
      else draw(element);
    }
  }

  function select(tab) {
    for (const other of tab.parentElement.children) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
    }
    drawVisible();
  }

  function onKey(event) {
    const tabs = [...event.currentTarget.children];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.focus();
    select(next);
    event.preventDefault();
  }

  for (const row of document.querySelectorAll("[role=tablist]")) {
    row.addEventListener("keydown", onKey);
    row.addEventListener("click", (event) => {
      const tab = event.target.closest("[role=tab]");
      if (tab) select(tab);
    });
  }
  for (const choice of document.querySelectorAll(".filters select")) {
    choice.addEventListener("change", () => {
      wanted[choice.name] = choice.value;
      applyFilters();
    });
  }
  for (const plate of document.querySelectorAll("details.plate")) {
    plate.addEventListener("toggle", drawVisible);
  }
  const phone = matchMedia("(max-width: 600px)");
  phone.addEventListener("change", () => fitHeads(phone.matches));
  fitHeads(phone.matches);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(draw));

  const figures = JSON.parse(await unpacked(document.getElementById("charts")));
  const library = document.createElement("script");
  library.textContent = await unpacked(document.getElementById("plotly"));
  document.head.append(library);
  drawVisible();
})();
