// Draws the graphs of a page over its tables, and fetches their values and figures again each minute. Colors and units come from the page.
"use strict";

addEventListener("DOMContentLoaded", () => {
  const page = document.querySelector(".graphs");
  const every = 60_000;
  const utc = page.dataset.zone === "utc";
  const at = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", timeZone: utc ? "UTC" : undefined });
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short", timeZone: utc ? "UTC" : undefined });
  const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: utc ? "UTC" : undefined });
  const plots = [];
  let last;

  function readable(value, unit) {
    if (value == null) {
      return "–";
    }
    const short = (x) => String(Math.abs(x) >= 1000 ? Math.round(x) : Number(x.toPrecision(4)));
    switch (unit) {
      case "Percent":
        return `${short(value)} %`;
      case "Seconds":
        return value !== 0 && Math.abs(value) < 1 ? `${short(value * 1000)} ms` : `${short(value)} s`;
      case "Bytes": {
        const units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let i = 0;
        for (; Math.abs(value) >= 1024 && i < units.length - 1; i++) {
          value /= 1024;
        }
        return `${short(value)} ${units[i]}`;
      }
    }
    return short(value);
  }

  // The lines of a graph can change from one answer to the next, and nodes differ: those that its table names are drawn, in the colors of the table.
  function linesOf(section, graph, steps) {
    return [...section.querySelectorAll("tbody tr")].map((row) => {
      const at = graph.names.indexOf(row.querySelector("th").textContent);
      const values = graph.lines[at] ?? new Array(steps).fill(null);
      return {
        values, cells: row.querySelectorAll("td"), key: row.querySelector(".key"),
        figures: [values.findLast((value) => value != null), graph.lowest[at], graph.average[at], graph.highest[at]].map((value) => readable(value, graph.unit)),
      };
    });
  }

  // While the pointer is over a graph, the column of the latest values shows those at the pointer.
  function follow(section, unit, lines) {
    const head = section.querySelector("th.latest");
    return (plot) => {
      const i = plot.cursor.idx;
      head.textContent = i == null ? "Latest" : at.format(new Date(plot.data[0][i] * 1000));
      for (const line of lines) {
        line.cells[0].textContent = i == null ? line.figures[0] : readable(line.values[i], unit);
      }
    };
  }

  function draw(values) {
    plots.splice(0).forEach((plot) => plot.destroy());
    for (const graph of values.graphs) {
      const section = page.querySelector(`[data-graph="${graph.id}"]`);
      if (!section) {
        continue; // it had no line when the page was made
      }
      const place = section.querySelector(".plot");
      const lines = linesOf(section, graph, values.times.length);
      section.querySelector("th.latest").textContent = "Latest";
      for (const line of lines) {
        line.figures.forEach((figure, i) => { line.cells[i].textContent = figure; });
      }
      const style = getComputedStyle(section);
      const axis = {
        stroke: getComputedStyle(section.querySelector(".how")).color,
        grid: { stroke: style.borderTopColor, width: 1 }, ticks: { stroke: style.borderTopColor, width: 1 }, font: "12px system-ui, sans-serif",
      };
      const plot = new uPlot({
        width: place.clientWidth, height: 190, legend: { show: false }, tzDate: (ts) => utc ? uPlot.tzDate(new Date(ts * 1000), "Etc/UTC") : new Date(ts * 1000),
        cursor: { sync: { key: "graphs", setSeries: false }, points: { size: 6 }, drag: { x: true, y: false } },
        scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] } },
        axes: [{ ...axis, space: 70, values: (_, ticks, __, ___, step) => ticks.map((tick) => (step >= 86_400 ? day : clock).format(new Date(tick * 1000))) }, { ...axis, size: 70, values: (_, ticks) => ticks.map((tick) => readable(tick, graph.unit)) }],
        series: [{}, ...lines.map(({ key, values }) => ({
          stroke: getComputedStyle(key).color, width: 2, dash: key.classList.contains("dashed") ? [6, 4] : undefined,
          points: { show: (plot, _, from, to) => alone(values, from, to) },
        }))],
        hooks: { setCursor: [follow(section, graph.unit, lines)] },
      }, [values.times, ...lines.map((line) => line.values)], place);
      const canvas = place.querySelector("canvas");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `Graph: ${section.querySelector("h2").textContent}. Its figures are in the table below.`);
      plots.push(plot);
    }
    last = values;
    page.dataset.drawn = "";
  }

  // A line needs points where a value has no neighbor to be connected with.
  function alone(values, from, to) {
    for (let i = from; i <= to; i++) {
      if (values[i] != null && values[i - 1] == null && values[i + 1] == null) {
        return true;
      }
    }
    return false;
  }

  async function load() {
    try {
      const answer = await fetch(page.dataset.source);
      if (answer.redirected) { // to the sign-in
        location.reload();
      } else if (answer.ok) {
        draw(await answer.json());
      }
    } catch {
      // The service does not answer at the moment; the next attempt comes in a minute.
    }
  }

  load();
  setInterval(() => document.hidden || load(), every);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => last && draw(last));
  new ResizeObserver(() => plots.forEach((plot) => plot.setSize({ width: plot.root.parentElement.clientWidth, height: 190 }))).observe(page);
});
