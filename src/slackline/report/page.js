"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("charts").textContent);
  const drawn = new Set();

  // "@ink" and "@c2/0.3" stand for the style sheet's colours, so that a chart follows the theme.
  function colour(token) {
    const [, name, opacity] = /^@([a-z]+\d?)(?:\/([\d.]+))?$/.exec(token) || [];
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
    return Plotly.react(element, themed(figure.data), layoutOf(figure.layout), { displayModeBar: false, responsive: true });
  }

  // A hidden chart has no width: it is drawn when its tab is opened.
  function drawVisible() {
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(draw));
  drawVisible();
})();
