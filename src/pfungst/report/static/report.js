// The script of our pages: theme, PNG downloads, and cases that can be filtered, sorted and opened.
// Everything on the page can be read without it.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, text, properties = {}) => Object.assign(document.createElement(tag), { textContent: text }, properties);

  // Light or dark: the system decides until somebody does.
  for (const button of all("[data-theme-switch]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    });
  }

  // PNG: the SVG file, drawn at three times its size.
  const savePng = (link) => {
    const picture = new Image();
    picture.onload = () => {
      const canvas = make("canvas", "", { width: picture.naturalWidth * 3, height: picture.naturalHeight * 3 });
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => {
        const href = URL.createObjectURL(blob);
        make("a", "", { href, download: link.download.replace(/svg$/, "png") }).click();
        setTimeout(() => URL.revokeObjectURL(href), 10000);
      });
    };
    picture.src = link.href;
  };
  for (const link of all('.get a[download$=".svg"]')) {
    const button = make("button", "PNG", { type: "button" });
    button.setAttribute("aria-label", (link.getAttribute("aria-label") || "SVG").replace("SVG", "PNG"));
    button.addEventListener("click", () => savePng(link));
    link.after(button);
  }

  // Cases
  const PAGE = 24;
  for (const browser of all(".browser")) {
    const form = browser.querySelector("form");
    const list = browser.querySelector(".cases");
    const told = browser.querySelector(".count");
    const more = browser.querySelector(".more");
    const dialog = browser.querySelector("dialog");
    const cards = all(".case", list);
    const words = cards.map((card) => card.textContent.toLowerCase());
    let fitting = [], shown = PAGE, open = 0;

    const fits = (card, at) => {
      const value = (name) => (form.elements[name] ? form.elements[name].value : "");
      for (const name of ["probe", "kind", "answerType", "questionType"]) {
        if (value(name) && card.dataset[name] !== value(name)) return false;
      }
      const [first, second, pair] = [value("first"), value("second"), value("pair")];
      if (pair) {
        const [a, b] = [card.dataset.right[first], card.dataset.right[second]];
        if (pair === "lost" && !(a === "1" && b === "0")) return false;
        if (pair === "won" && !(a === "0" && b === "1")) return false;
        if (pair === "both" && !(a === "0" && b === "0")) return false;
      }
      return value("text").toLowerCase().split(/\s+/).every((word) => words[at].includes(word));
    };
    const place = new Map(cards.map((card, at) => [card, at]));
    const order = {
      "": (a, b) => place.get(a) - place.get(b),
      loss: (a, b) => b.dataset.loss - a.dataset.loss || place.get(a) - place.get(b),
      confidence: (a, b) => b.dataset.confidence - a.dataset.confidence || place.get(a) - place.get(b),
      id: (a, b) => a.dataset.id.localeCompare(b.dataset.id, undefined, { numeric: true }),
      question: (a, b) => a.dataset.question.localeCompare(b.dataset.question),
    };
    const draw = () => {
      const visible = new Set(fitting.slice(0, shown));
      for (const card of cards) card.hidden = !visible.has(card);
      fitting.forEach((card) => list.append(card));
      told.textContent = `${fitting.length} of ${cards.length} cases fit` + (fitting.length > shown ? `, the first ${shown} are shown.` : ".");
      more.hidden = fitting.length <= shown;
      browser.querySelector(".none").hidden = fitting.length > 0;
    };
    const filter = () => {
      fitting = cards.filter(fits).sort(order[form.elements.sort.value] || order[""]);
      shown = PAGE;
      draw();
    };
    const show = (at) => {
      open = (at + fitting.length) % fitting.length;
      const copy = fitting[open].cloneNode(true);
      copy.hidden = false;
      copy.removeAttribute("id");
      all("[id]", copy).forEach((part) => part.removeAttribute("id"));
      all(".open", copy).forEach((button) => button.remove());
      all("details", copy).forEach((part) => { part.open = true; });
      dialog.querySelector(".inside").replaceChildren(copy);
      dialog.querySelector(".count").textContent = `Case ${open + 1} of ${fitting.length}`;
      if (!dialog.open) dialog.showModal();
      dialog.scrollTop = 0;
    };
    for (const card of cards) {
      const button = make("button", "Open", { type: "button", className: "open" });
      button.setAttribute("aria-label", `Open the case: ${card.dataset.question}`);
      button.addEventListener("click", () => show(fitting.indexOf(card)));
      card.querySelector(".body").append(button);
    }
    form.hidden = told.hidden = false;
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(filter));
    more.addEventListener("click", () => { shown += PAGE; draw(); });
    dialog.querySelector(".previous").addEventListener("click", () => show(open - 1));
    dialog.querySelector(".next").addEventListener("click", () => show(open + 1));
    dialog.querySelector(".close").addEventListener("click", () => dialog.close());
    dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowLeft") show(open - 1);
      if (event.key === "ArrowRight") show(open + 1);
    });
    // A probe's section links here with its name.
    for (const link of all("[data-show]")) {
      link.addEventListener("click", () => {
        form.reset();
        if (form.elements.probe) form.elements.probe.value = link.dataset.show;
        setTimeout(filter);
      });
    }
    filter();
    const named = cards.find((card) => card.id && `#${card.id}` === location.hash);
    if (named) show(fitting.indexOf(named));
  }
})();
