// The live game: the plan is drawn here, the server judges, draws the image and asks the player.
"use strict";
(() => {
  const table = document.getElementById("game");
  if (!table) return;
  const SVG = "http://www.w3.org/2000/svg";
  const scene = JSON.parse(table.dataset.scene);
  const plan = table.querySelector("svg.plan-live");
  const seen = table.querySelector(".seen img");
  const part = (name) => table.querySelector(`[data-${name}]`);
  const token = document.querySelector('meta[name="form-token"]').content;
  const mayWrite = table.dataset.mayWrite === "1";
  let positions = scene.start.map((place) => [...place]);
  let by = "hand", turn = 0, reader = null;

  // The plan is turned as the image is: right is right, behind is up. The directions are unit vectors on the ground.
  const flat = (way) => { const length = Math.hypot(...way); return way.map((value) => value / length); };
  const right = flat(scene.right), behind = flat(scene.behind);
  const toPlan = ([x, y]) => [x * right[0] + y * right[1], -(x * behind[0] + y * behind[1])];
  const fromPlan = ([u, v]) => {
    const det = right[0] * behind[1] - right[1] * behind[0];
    return [(u * behind[1] + v * right[1]) / det, (-v * right[0] - u * behind[0]) / det];
  };
  const make = (name, attributes, parent) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return parent.appendChild(node);
  };

  const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) => toPlan([x * scene.bound, y * scene.bound]));
  make("polygon", { points: corners.map((one) => one.join(",")).join(" "), fill: "#fff", stroke: "#c4c4c0", "stroke-width": ".05" }, plan);
  make("polygon", { points: "0,4.55 -.35,5.05 .35,5.05", fill: "#8a8a86" }, plan);
  const ghosts = make("g", { opacity: ".3" }, plan), arrows = make("g", {}, plan), front = make("g", {}, plan);

  const bright = (colour) => {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return 0.3 * r + 0.59 * g + 0.11 * b > 140;
  };
  const draw = (thing, number, parent) => {
    const group = make("g", {}, parent);
    const edge = thing.metal ? "#ffffff" : "#00000066";
    const style = { fill: thing.colour, stroke: edge, "stroke-width": ".09" };
    if (thing.shape === "cube") {
      const cos = thing.radius * Math.cos(thing.turn), sin = thing.radius * Math.sin(thing.turn);
      const points = [[cos - sin, sin + cos], [-cos - sin, -sin + cos], [-cos + sin, -sin - cos], [cos + sin, sin - cos]].map(toPlan);
      make("polygon", { ...style, points: points.map((one) => one.join(",")).join(" ") }, group);
    } else {
      make("circle", { ...style, r: thing.radius }, group);
      if (thing.shape === "cylinder") make("circle", { r: thing.radius * 0.7, fill: "none", stroke: edge, "stroke-width": ".06" }, group);
    }
    make("text", { "text-anchor": "middle", "dominant-baseline": "central", "font-size": ".42", "font-family": "sans-serif", fill: bright(thing.colour) ? "#222" : "#fff" }, group).textContent = number;
    return group;
  };

  const things = scene.objects.map((thing, number) => {
    draw(thing, "", ghosts).setAttribute("transform", `translate(${toPlan(scene.start[number]).join(" ")})`);
    const group = draw(thing, number, front);
    group.classList.add("thing");
    group.setAttribute("tabindex", "0");
    group.setAttribute("role", "button");
    group.setAttribute("aria-label", `object ${number}: ${thing.name}`);
    make("title", {}, group).textContent = `${number}: ${thing.name}`;
    make("circle", { class: "ring", r: thing.radius * 1.25 + 0.12, fill: "transparent", stroke: "transparent", "stroke-width": ".08" }, group);
    return group;
  });

  const show = () => {
    things.forEach((group, number) => group.setAttribute("transform", `translate(${toPlan(positions[number]).join(" ")})`));
    arrows.replaceChildren();
    positions.forEach((place, number) => {
      const [x1, y1] = toPlan(scene.start[number]), [x2, y2] = toPlan(place), length = Math.hypot(x2 - x1, y2 - y1);
      if (length < 0.05) return;
      const [x, y] = [(x2 - x1) / length, (y2 - y1) / length];
      make("line", { x1, y1, x2, y2, stroke: "#c81e1e", "stroke-width": ".1", "stroke-dasharray": ".22 .12" }, arrows);
      make("polygon", { points: [[x2, y2], [x2 - 0.3 * x - 0.16 * y, y2 - 0.3 * y + 0.16 * x], [x2 - 0.3 * x + 0.16 * y, y2 - 0.3 * y - 0.16 * x]].map((one) => one.join(",")).join(" "), fill: "#c81e1e" }, arrows);
    });
  };

  const post = async (name, more = {}) => {
    const body = { run: table.dataset.run, id: table.dataset.id, player: table.dataset.player, positions, ...more };
    const reply = await fetch(`/game/${name}`, { method: "POST", headers: { "content-type": "application/json", "x-form-token": token }, body: JSON.stringify(body) });
    if (!reply.ok) {
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      throw new Error(page.querySelector(".verdict")?.textContent || `The server answered ${reply.status}.`);
    }
    return reply;
  };
  const told = (name, text, kind = "") => {
    const span = document.createElement("span");
    span.textContent = text;
    if (kind) span.className = kind;
    part(name).replaceChildren(span);
  };

  // One question to the server at a time: while it works, only the latest layout waits.
  let waiting = false, busy = false;
  const judge = async () => {
    if (!mayWrite) return;
    if (busy) { waiting = true; return; }
    busy = true;
    const begun = performance.now();
    try {
      const found = await (await post("judge")).json();
      seen.src = found.image;
      part("time").textContent = `· drawn and judged in ${Math.round(performance.now() - begun)} ms`;
      plan.classList.toggle("forbidden", found.refused.length > 0);
      told("now", found.now ?? "no answer", found.now === found.truth ? "" : "wrong");
      if (!found.refused.length) told("rules", "all kept", "right");
      else {
        const list = document.createElement("ul");
        for (const one of found.refused) {
          const item = list.appendChild(document.createElement("li"));
          item.className = "wrong";
          item.textContent = one.sentence;
          item.dataset.rule = one.rule;
        }
        part("rules").replaceChildren(list);
      }
    } catch (error) { told("rules", error.message, "wrong"); }
    busy = false;
    if (waiting) { waiting = false; judge(); }
  };
  const ask = async () => {
    if (!mayWrite) return;
    const mine = ++turn;
    told("answer", "…");
    try {
      const found = await (await post("answer")).json();
      if (mine !== turn) return;
      const sure = found.after.confidence == null ? "" : ` (confidence ${(100 * found.after.confidence).toFixed(1)}%)`;
      told("answer", found.after.text + sure, found.after.right ? "right" : "wrong");
      told("outcome", found.outcome);
      table.classList.toggle("fooled", found.outcome.startsWith("Fooled"));
    } catch (error) { if (mine === turn) told("answer", error.message, "wrong"); }
  };
  const moved = (asked) => {
    show();
    table.classList.remove("fooled");
    told("outcome", "–");
    if (!asked) { turn += 1; told("answer", "not asked yet", "note"); }
    judge();
    if (asked) ask();
  };

  const pointOf = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(plan.getScreenCTM().inverse());
    return [point.x, point.y];
  };
  things.forEach((group, number) => {
    let grip = null;
    group.addEventListener("pointerdown", (event) => {
      if (!mayWrite) return;
      const [u, v] = pointOf(event), [x, y] = toPlan(positions[number]);
      grip = [x - u, y - v];
      group.setPointerCapture(event.pointerId);
      group.classList.add("held");
      event.preventDefault();
      group.focus();
    });
    group.addEventListener("pointermove", (event) => {
      if (!grip) return;
      const [u, v] = pointOf(event);
      const limit = (value) => Math.min(5.1, Math.max(-5.1, value));
      positions[number] = fromPlan([limit(u + grip[0]), limit(v + grip[1])]);
      by = "hand";
      moved(false);
    });
    const drop = () => { if (grip) { grip = null; group.classList.remove("held"); moved(true); } };
    group.addEventListener("pointerup", drop);
    group.addEventListener("pointercancel", drop);
    group.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!way || !mayWrite) return;
      event.preventDefault();
      const step = event.shiftKey ? 0.5 : 0.1, [u, v] = toPlan(positions[number]);
      positions[number] = fromPlan([u + step * way[0], v + step * way[1]]);
      by = "hand";
      moved(false);
    });
  });

  part("ask").addEventListener("click", ask);
  part("reset").addEventListener("click", () => { positions = scene.start.map((place) => [...place]); by = "hand"; moved(false); });
  part("save").addEventListener("click", async () => {
    try {
      const found = await (await post("save", { by })).json();
      const link = document.createElement("a");
      link.href = found.address;
      link.textContent = found.run;
      part("saved").replaceChildren("Saved in the run ", link, ".");
    } catch (error) { part("saved").textContent = error.message; }
  });

  const search = part("search"), stop = part("stop"), list = part("moves");
  const take = (places) => { positions = places.map((place) => [...place]); };
  search.addEventListener("click", async () => {
    if (!mayWrite) return;
    search.disabled = true;
    stop.hidden = false;
    list.replaceChildren();
    part("search-told").textContent = "Searching …";
    const name = part("adversary").value;
    let count = 0;
    try {
      const reply = await post("search", { adversary: name, seed: Math.floor(Math.random() * 1e6) });
      reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          const event = JSON.parse(line);
          if (event.end) {
            part("search-told").textContent = event.sentence;
            by = event.positions ? name : "hand";
            take(event.positions ?? scene.start);
            moved(true);
            continue;
          }
          count += 1;
          take(event.positions);
          show();
          const item = list.appendChild(document.createElement("li"));
          const words = event.refused ? `refused: ${event.refused}` : `${event.answer ?? "no answer"}${event.confidence == null ? "" : ` (${(100 * event.confidence).toFixed(0)}%)`}`;
          const button = item.appendChild(document.createElement("button"));
          button.type = "button";
          button.textContent = "show";
          button.addEventListener("click", () => { take(event.positions); by = name; moved(true); });
          const said = item.appendChild(document.createElement("span"));
          said.textContent = ` ${words} `;
          said.className = event.status === "fooled" ? "wrong" : "";
          list.scrollTop = list.scrollHeight;
          part("search-told").textContent = `${count} scenes tried …`;
          await new Promise((resolve) => setTimeout(resolve, 30));
        }
      }
    } catch (error) { part("search-told").textContent = error.message; }
    reader = null;
    search.disabled = false;
    stop.hidden = true;
  });
  stop.addEventListener("click", () => reader?.cancel());

  for (const button of table.querySelectorAll("button")) if (!mayWrite) button.disabled = true;
  show();
  if (mayWrite) ask();
})();
