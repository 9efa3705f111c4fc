// Keys, fields that depend on others, time on the item, one submission. Every page works without it.
"use strict";
(() => {
  const form = document.querySelector("form[data-item]");
  if (!form) return;
  const fields = [...form.querySelectorAll("[data-field]")];

  const values = () => Object.fromEntries(new FormData(form));
  const arrange = () => {
    const now = values();
    for (const field of fields) {
      if (!field.dataset.when) continue;
      const [name, wanted] = field.dataset.when.split("=");
      const asked = now[name] === wanted;
      field.hidden = !asked;
      for (const input of field.querySelectorAll("input, select")) { input.required = asked; input.disabled = !asked; }
    }
  };
  form.addEventListener("change", arrange);
  arrange();

  // Time while the page is in front.
  let active = 0, since = document.hidden ? null : performance.now();
  const pause = () => { if (since !== null) { active += performance.now() - since; since = null; } };
  document.addEventListener("visibilitychange", () => { if (document.hidden) pause(); else since ??= performance.now(); });

  const button = form.querySelector("button[type=submit]");
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) { event.preventDefault(); return; }
    sent = true;
    pause();
    form.elements.active.value = (active / 1000).toFixed(2);
    button.setAttribute("aria-busy", "true");
    button.textContent = "Saving …";
  });
  addEventListener("pageshow", () => { sent = false; since ??= performance.now(); button.textContent = "Save and continue"; button.removeAttribute("aria-busy"); });

  for (const note of document.querySelectorAll(".keys")) note.hidden = matchMedia("(hover: none)").matches;
  const choose = (field, number) => {
    const radios = [...field.querySelectorAll("input[type=radio]")];
    const list = field.querySelector("select");
    if (radios.length) {
      if (!radios[number - 1]) return;
      radios[number - 1].checked = true;
      radios[number - 1].focus();
    } else if (list) {
      const options = [...list.options].filter((option) => option.value);
      const option = options.find((one) => one.value === String(number)) || options[number - 1];
      if (!option) return;
      list.value = option.value;
      list.focus();
    }
    form.dispatchEvent(new Event("change"));
  };
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.repeat || event.target.closest("input[type=text], textarea, summary")) return;
    if (/^[1-9]$/.test(event.key)) {
      const now = values();
      const open = fields.filter((field) => !field.hidden && field.querySelector("input[type=radio], select"));
      const field = open.find((one) => !now[one.dataset.field]) || event.target.closest("[data-field]") || open[0];
      if (field) { event.preventDefault(); choose(field, Number(event.key)); }
    } else if (event.key === "Enter" && !event.target.closest("button, a")) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
})();
