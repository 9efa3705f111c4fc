// Theme, live progress and filters that apply at once. Every page works without it.
"use strict";
(() => {
  const root = document.documentElement;
  const remembered = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
  if (remembered === "light" || remembered === "dark") root.dataset.theme = remembered;
  for (const button of document.querySelectorAll("[data-theme-switch]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a private window forgets */ }
    });
  }

  for (const form of document.querySelectorAll("form.filters")) {
    for (const field of form.querySelectorAll("select")) field.addEventListener("change", () => form.requestSubmit());
    form.addEventListener("submit", () => {
      // An address without empty fields is one that can be read.
      for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
    });
    addEventListener("pageshow", () => { for (const field of form.elements) field.disabled = false; });
  }

  for (const form of document.querySelectorAll("form.ask")) {
    form.addEventListener("submit", () => {
      const button = form.querySelector("button");
      button.textContent = "Asking …";
      button.setAttribute("aria-busy", "true");
    });
    addEventListener("pageshow", () => { form.querySelector("button").textContent = "Ask"; });
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, [tabindex], dialog")) return;
    const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
    const link = rel && document.querySelector(`a[rel="${rel}"]`);
    if (link) link.click();
  });

  const bars = [...document.querySelectorAll(".progress[data-run]")];
  if (bars.length && location.protocol.startsWith("http") && !("static" in document.body.dataset)) {
    const events = new EventSource("/events");
    events.onmessage = (event) => {
      const states = JSON.parse(event.data);
      for (const bar of bars) {
        const now = states[bar.dataset.run];
        if (!now) continue;
        const lives = now.state === "running" || now.state === "quiet";
        const lived = bar.dataset.state === "running" || bar.dataset.state === "quiet";
        if (lives !== lived && !document.activeElement?.closest("form")) { location.reload(); return; }
        bar.hidden = !lives;
        if (lives) {
          const shown = bar.querySelector("progress");
          shown.max = now.total || 1;
          shown.value = now.done;
          bar.querySelector(".told").textContent = `${now.what} ${now.done.toLocaleString("en")} of ${now.total.toLocaleString("en")}`;
        }
      }
      const fresh = Object.keys(states).some((id) => !bars.some((bar) => bar.dataset.run === id));
      if (fresh && location.pathname === "/") location.reload();
    };
    addEventListener("pagehide", () => events.close());
  }
})();
