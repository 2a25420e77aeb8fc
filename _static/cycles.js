/* Cycles to touch: three small machines on one page. Plain JavaScript and SVG, no network.
   The first half is formulas, which run without a page too (node); the second half draws. */
(function (root) {
  "use strict";

  // ---------------------------------------------------------------- numbers
  // A seeded generator of uniform numbers in (0, 1): mulberry32.
  function generator(seed) {
    let state = seed >>> 0;
    return function () {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
      return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
    };
  }

  // A P x Q matrix of the linear process, x.w / sqrt(d): m(n) = d^(1 - n).
  function drawLinear(P, Q, d, random) {
    const normal = () =>
      Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
    const vectors = (count) =>
      Array.from({ length: count }, () => Array.from({ length: d }, normal));
    const x = vectors(P), w = vectors(Q);
    return x.map((a) => w.map((b) => dot(a, b) / Math.sqrt(d)));
  }

  function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }
  const transpose = (m) => m[0].map((_, j) => m.map((row) => row[j]));
  const times = (a, b) => {
    const columns = transpose(b);
    return a.map((row) => columns.map((column) => dot(row, column)));
  };
  const traceOfProduct = (a, b) => transpose(b).reduce((sum, row, i) => sum + dot(row, a[i]), 0);
  const trace = (m) => m.reduce((sum, row, i) => sum + row[i], 0);
  const choose = (N, n) => (n === 0 ? 1 : (choose(N, n - 1) * (N - n + 1)) / n);
  const falling = (N, n) => (n === 0 ? 1 : (N - n + 1) * falling(N, n - 1));

  // ------------------------------------------------------------- estimators
  // The 2n entries of a cycle, as [row, column]: down column alpha_l, along row i_(l+1).
  function turns(rows, columns) {
    return columns.flatMap((a, l) => [[rows[l], a], [rows[(l + 1) % rows.length], a]]);
  }

  function cycleProduct(phi, rows, columns) {
    return turns(rows, columns).reduce((p, [i, a]) => p * phi[i][a], 1);
  }

  // Gram matrix of the rows over P Q, as the naive estimator has it.
  function gram(phi) {
    const size = phi.length * phi[0].length;
    return phi.map((a) => phi.map((b) => dot(a, b) / size));
  }

  // tr(A B^(n - 1)) for n = 1, ..., nMax.
  function traces(A, B, nMax) {
    const values = [trace(A)];
    for (let n = 2, power = A; n <= nMax; n++) {
      values.push(traceOfProduct(power, B));
      if (n < nMax) power = times(power, B);
    }
    return values;
  }

  // tr (K / P)^n for n = 1, ..., nMax, by the shorter side.
  function naive(phi, nMax) {
    const K = gram(phi.length <= phi[0].length ? phi : transpose(phi));
    return traces(K, K, nMax);
  }

  // Kong and Valiant: the mean over increasing rows of the cycles of K.
  function kvRow(phi, nMax) {
    const P = phi.length, K = gram(phi).map((row) => row.map((value) => value * P));
    const upper = K.map((row, i) => row.map((value, j) => (j > i ? value : 0)));
    return traces(K, upper, nMax).map((value, k) => value / choose(P, k + 1));
  }

  const kvCol = (phi, nMax) => kvRow(transpose(phi), nMax);

  // The mean over increasing cycles by the streaming recurrence, one start row at a time.
  function increasing(phi, nMax) {
    const P = phi.length, Q = phi[0].length, sums = new Array(nMax).fill(0);
    for (let h = 0; h < P; h++) {
      const R = new Float64Array(nMax * Q), c = new Float64Array(nMax + 1);
      for (let a = h; a < P; a++) {
        const row = phi[a];
        c.fill(0);
        c[0] = a === h ? 1 : 0;
        for (let b = 0; b < Q; b++) {
          const entry = row[b];
          for (let k = nMax - 1; k >= 0; k--) {  // highest order first
            const r = R[k * Q + b];
            R[k * Q + b] = r + c[k] * entry;
            c[k + 1] += r * entry;
          }
        }
      }
      for (let k = 0; k < nMax; k++) sums[k] += dot(R.subarray(k * Q, (k + 1) * Q), phi[h]);
    }
    return sums.map((sum, k) => sum / (choose(P, k + 1) * choose(Q, k + 1)));
  }

  // S[k][a][b]: staircases of order k from row h to the entry (a, b); S[0] is not used.
  function staircases(phi, h, nMax) {
    const S = [null, phi.map((row, a) => row.map((value) => (a === h ? value : 0)))];
    for (let k = 2; k <= nMax; k++) {
      S.push(phi.map((row, a) => row.map((_, b) => stair(phi, S[k - 1], a, b))));
    }
    return S;
  }

  // One entry of the next S: all that ends above and to the left, one step down, one along.
  function stair(phi, before, a, b) {
    let sum = 0;
    for (let k = 0; k < b; k++) {
      for (let l = 0; l < a; l++) sum += before[l][k] * phi[a][k];
    }
    return sum * phi[a][b];
  }

  // Sum of S over all entries times the closing factor in row h.
  const closed = (phi, S, h) => S.reduce((sum, row) => sum + dot(row, phi[h]), 0);

  // ----------------------------------------------------------- expectations
  // [4, 1, 4] -> [0, 1, 0]: which positions hold the same index.
  const pattern = (indices) => {
    const seen = [...new Set(indices)];
    return indices.map((i) => seen.indexOf(i));
  };

  // All patterns of n positions (set partitions).
  function patterns(n) {
    if (n === 0) return [[]];
    return patterns(n - 1).flatMap((p) =>
      Array.from({ length: Math.max(-1, ...p) + 2 }, (_, label) => [...p, label])
    );
  }

  // All ways to pair up a list of even length, as lists of pairs.
  function pairings(items) {
    if (!items.length) return [[]];
    const [first, ...rest] = items;
    return rest.flatMap((partner, i) =>
      pairings(rest.filter((_, j) => j !== i)).map((p) => [[first, partner], ...p])
    );
  }

  // Expectation of a cycle of the linear process whose indices coincide as the patterns say:
  // coefficients c[j] of d^(-j). Gaussian x and w: sum over the pairings of the entries of
  // each row and of each column; every loop they close gives a factor d.
  const known = new Map();
  function expectation(rowPattern, columnPattern) {
    const key = `${rowPattern}|${columnPattern}`;
    if (known.has(key)) return known.get(key);
    const n = rowPattern.length, entries = turns(rowPattern, columnPattern);
    const joint = (side) => {
      const groups = new Map();
      entries.forEach((entry, e) => {
        groups.set(entry[side], [...(groups.get(entry[side]) || []), e]);
      });
      return [...groups.values()].reduce(
        (all, group) => all.flatMap((p) => pairings(group).map((q) => [...p, ...q])),
        [[]]
      );
    };
    const partners = (pairs) => {
      const partner = new Array(2 * n);
      for (const [e, f] of pairs) (partner[e] = f), (partner[f] = e);
      return partner;
    };
    const coefficients = new Array(n + 1).fill(0);
    const inColumns = joint(1).map(partners);
    for (const inRows of joint(0).map(partners)) {
      for (const inColumn of inColumns) coefficients[n - loops(inRows, inColumn)] += 1;
    }
    known.set(key, coefficients);
    return coefficients;
  }

  function loops(first, second) {
    const seen = new Array(first.length).fill(false);
    let count = 0;
    for (let e = 0; e < first.length; e++) {
      if (seen[e]) continue;
      count += 1;
      for (let f = e; !seen[f]; f = second[first[f]]) seen[f] = seen[first[f]] = true;
    }
    return count;
  }

  const evaluate = (coefficients, d) => coefficients.reduce((sum, c, j) => sum + c / d ** j, 0);

  // Share of the P^n Q^n cycles whose indices coincide in this way.
  function share(rowPattern, columnPattern, P, Q) {
    const n = rowPattern.length, blocks = (p) => Math.max(...p) + 1;
    return (falling(P, blocks(rowPattern)) * falling(Q, blocks(columnPattern))) / (P * Q) ** n;
  }

  // Exact expectation of naive: every pattern with its share.
  function naiveExpectation(P, Q, n, d) {
    let sum = 0;
    for (const p of patterns(n)) {
      for (const q of patterns(n)) sum += share(p, q, P, Q) * evaluate(expectation(p, q), d);
    }
    return sum;
  }

  // Exact expectation of KV-row: distinct rows, and columns in every pattern. KV-col has rows.
  function kvExpectation(Q, n, d) {
    const distinct = Array.from({ length: n }, (_, l) => l);
    return patterns(n).reduce((sum, q) => {
      const part = falling(Q, Math.max(...q) + 1) / Q ** n;
      return sum + part * evaluate(expectation(distinct, q), d);
    }, 0);
  }

  // ------------------------------------------------------------ many matrices
  const ESTIMATORS = {
    naive: { label: "naive", estimate: naive },
    kv_row: { label: "KV-row", estimate: kvRow },
    kv_col: { label: "KV-col", estimate: kvCol },
    increasing: { label: "increasing", estimate: increasing },
  };

  // Estimates of m(n) over the truth from one matrix, by name.
  function oneDraw(P, Q, n, d, random) {
    const phi = drawLinear(P, Q, d, random), truth = d ** (1 - n), values = {};
    for (const name in ESTIMATORS) {
      values[name] = ESTIMATORS[name].estimate(phi, n)[n - 1] / truth;
    }
    return values;
  }

  function meanAndSpread(values) {
    const mean = values.reduce((s, v) => s + v, 0) / values.length;
    const square = values.reduce((s, v) => s + (v - mean) ** 2, 0) / (values.length - 1);
    return { mean, spread: Math.sqrt(square), error: Math.sqrt(square / values.length) };
  }

  const formulas = {
    generator, drawLinear, turns, cycleProduct, naive, kvRow, kvCol, increasing, staircases,
    closed, pattern, patterns, expectation, evaluate, share, naiveExpectation, kvExpectation, oneDraw,
    meanAndSpread, choose,
  };
  if (typeof module !== "undefined" && module.exports) module.exports = formulas;
  if (!root.document) return;

  // ==================================================================== page
  const SVG = "http://www.w3.org/2000/svg", SEED = 7;
  const calm = root.matchMedia("(prefers-reduced-motion: reduce)");

  function add(parent, name, attributes = {}, text = null) {
    const svg = parent.namespaceURI === SVG || name === "svg";
    const node = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== null) node.textContent = text;
    parent.append(node);
    return node;
  }

  const show = (value, digits = 2) => {
    const text = Math.abs(value) >= 1000 ? value.toPrecision(3) : value.toFixed(digits);
    return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "\u2212");
  };
  const below = (number) => String(number).replace(/\d/g, (c) => "₀₁₂₃₄₅₆₇₈₉"[c]);
  const above = (number) => String(number).replace(/\d/g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]);

  // c[0] + c[1] / d + ... as a reader writes it.
  const polynomial = (coefficients) =>
    coefficients
      .map((c, j) => {
        if (!c) return null;
        return j === 0 ? `${c}` : `${c}/d${j > 1 ? above(j) : ""}`;
      })
      .filter(Boolean)
      .join(" + ");

  function buttons(parent, label, choices, chosen, react) {
    const group = add(parent, "div", { class: "ct-choice", role: "group", "aria-label": label });
    add(group, "span", {}, label);
    for (const choice of choices) {
      const button = add(group, "button", { type: "button", "data-choice": choice }, choice);
      button.setAttribute("aria-pressed", choice === chosen);
      button.addEventListener("click", () => {
        for (const b of group.querySelectorAll("button")) b.setAttribute("aria-pressed", b === button);
        react(choice);
      });
    }
    return group;
  }

  function slider(parent, label, name, { min, max, value }, react) {
    const box = add(parent, "label", { class: "ct-slider" });
    add(box, "span", {}, label);
    const input = add(box, "input", { type: "range", min, max, value, step: 1, "data-name": name });
    const shown = add(box, "output", {}, String(value));
    input.addEventListener("input", () => {
      shown.textContent = input.value;
      react(Number(input.value));
    });
    return input;
  }

  // A matrix as an SVG: numbers in cells, with room for labels above and to the left. In
  // cells that a way may cross, the way keeps to the upper left and the number to the right.
  const CROSSED = { width: 50, height: 42, left: 50, top: 26, number: [10, 15], way: [-9, -7] };
  const PLAIN = { width: 44, height: 30, left: 2, top: 2, number: [0, 4] };
  const corner = (G, i, a) => ({ x: G.left + a * G.width, y: G.top + i * G.height });
  const centre = (G, i, a, [dx, dy] = [0, 0]) => [
    G.left + (a + 0.5) * G.width + dx,
    G.top + (i + 0.5) * G.height + dy,
  ];
  function grid(parent, G, P, Q, label) {
    const [width, height] = [G.left + Q * G.width + 2, G.top + P * G.height + 2];
    const svg = add(parent, "svg", {
      viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label, class: "ct-grid",
    });
    svg.style.maxWidth = `${width}px`;
    const bands = add(svg, "g"), cells = [], layer = add(svg, "g");
    for (let i = 0; i < P; i++) {
      cells.push([]);
      for (let a = 0; a < Q; a++) {
        const cell = add(layer, "g", { class: "ct-cell" }), [x, y] = centre(G, i, a, G.number);
        add(cell, "rect", { ...corner(G, i, a), width: G.width, height: G.height });
        cells[i].push({ cell, text: add(cell, "text", { x, y }) });
      }
    }
    return { svg, cells, bands };
  }

  // A coloured rectangle behind the cells from (i, a), so many rows and columns large.
  function band(parent, G, i, a, rows, columns, kind) {
    const size = { width: columns * G.width, height: rows * G.height };
    add(parent, "rect", { ...corner(G, i, a), ...size, class: kind });
  }

  // A P x Q matrix with one digit after the point, so that sums can be checked by hand.
  const smallMatrix = (P, Q, d, seed) =>
    drawLinear(P, Q, d, generator(seed)).map((row) =>
      row.map((value) => Math.round(10 * value) / 10 || 0.1)
    );

  // -------------------------------------------------------------- part: walk
  function walk(place) {
    const G = CROSSED, P = 6, Q = 7, d = 3, phi = smallMatrix(P, Q, d, SEED), random = generator(SEED + 1);
    let rows = [0, 3], columns = [1, 4], active = 0;
    const controls = add(place, "div", { class: "ct-controls" });
    buttons(controls, "order n", ["2", "3", "4"], "2", (n) => choosePath(Number(n), true));
    const make = add(controls, "div", { class: "ct-choice" });
    for (const [text, disjoint] of [["a disjoint cycle", true], ["a repeating cycle", false]]) {
      const button = add(make, "button", { type: "button" }, text);
      button.addEventListener("click", () => choosePath(rows.length, disjoint));
    }
    const { svg, cells, bands } = grid(place, G, P, Q, "matrix with a cycle");
    const defs = add(svg, "defs");
    const marker = add(defs, "marker", {
      id: "ct-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
      orient: "auto-start-reverse", markerUnits: "userSpaceOnUse",
    });
    add(marker, "path", { d: "M0,0 L8,4 L0,8 z", class: "ct-head" });
    const labels = add(svg, "g"), path = add(svg, "g"), handles = add(svg, "g");
    const said = add(place, "div", { class: "ct-said", "aria-live": "polite" });

    function choosePath(n, disjoint) {
      do {
        const draw = (size) => Array.from({ length: n }, () => Math.floor(random() * size));
        [rows, columns] = [draw(P), draw(Q)];
      } while (repeats() === disjoint);
      active = 0;
      update();
    }
    const twice = (list) => new Set(list).size < list.length;
    const repeats = () => twice(rows) || twice(columns);

    function move(l, i, a) {
      rows[l] = Math.max(0, Math.min(P - 1, i));
      columns[l] = Math.max(0, Math.min(Q - 1, a));
      update();
    }

    cells.forEach((row, i) => row.forEach(({ cell, text }, a) => {
      text.textContent = show(phi[i][a], 1);
      cell.addEventListener("click", () => {
        const l = active;
        active = (active + 1) % rows.length;
        move(l, i, a);
      });
    }));

    function cellAt(event) {
      const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      return [
        Math.floor(((event.clientY - box.top) * scale - G.top) / G.height),
        Math.floor(((event.clientX - box.left) * scale - G.left) / G.width),
      ];
    }

    const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    function drawHandle(l) {
      const [x, y] = centre(G, rows[l], columns[l], G.way), aside = shift(l);
      const handle = add(handles, "g", {
        class: "ct-handle", tabindex: 0, role: "button", "data-corner": l + 1,
        "aria-label": `corner ${l + 1} at row ${rows[l] + 1}, column ${columns[l] + 1}; ` +
          "arrow keys move it",
        "aria-pressed": l === active,
      });
      add(handle, "circle", { cx: x + aside, cy: y + aside, r: 17, class: "ct-finger" });
      add(handle, "circle", { cx: x + aside, cy: y + aside, r: 9 });
      add(handle, "text", { x: x + aside, y: y + aside + 4 }, String(l + 1));
      handle.addEventListener("focus", () => (active = l));
      handle.addEventListener("keydown", (event) => {
        const step = STEPS[event.key];
        if (!step) return;
        event.preventDefault();
        active = l;
        move(l, rows[l] + step[0], columns[l] + step[1]);
        handles.querySelector(`[data-corner="${l + 1}"]`).focus();
      });
      handle.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        active = l;
        const drag = (e) => move(l, ...cellAt(e));
        const drop = () => {
          root.removeEventListener("pointermove", drag);
          root.removeEventListener("pointerup", drop);
          root.removeEventListener("pointercancel", drop);
        };
        root.addEventListener("pointermove", drag);
        root.addEventListener("pointerup", drop);
        root.addEventListener("pointercancel", drop);
        update();
      });
    }

    // ways that lie on each other are drawn side by side
    const shift = (l) => (l - (rows.length - 1) / 2) * 3.5;
    function drawPath() {
      rows.forEach((i, l) => {
        const next = (l + 1) % rows.length, [s, t] = [shift(l), shift(next)];
        const [x, y] = centre(G, i, columns[l], G.way);
        const [u, v] = centre(G, rows[next], columns[next], G.way);
        const arrow = (x1, y1, x2, y2) => {
          if (Math.hypot(x2 - x1, y2 - y1) < 12) return;
          add(path, "line", { x1, y1, x2, y2, class: "ct-way", "marker-end": "url(#ct-arrow)" });
        };
        arrow(x + s, y + s, x + s, v + t);
        arrow(x + s, v + t, u + t, v + t);
      });
    }

    function drawLabels(list, letter, isRow) {
      for (const index of new Set(list)) {
        const at = list.flatMap((value, l) => (value === index ? [l + 1] : []));
        const [x, y] = isRow ? centre(G, index, 0) : centre(G, 0, index);
        const text = at.map((l) => letter + below(l)).join(at.length > 2 ? "" : "=");
        add(labels, "text", {
          x: isRow ? G.left - 6 : x, y: isRow ? y + 4 : G.top - 8,
          class: `ct-label${isRow ? " ct-side" : ""}${at.length > 1 ? " ct-twice" : ""}`,
        }, text);
        if (at.length > 1) {
          if (isRow) band(bands, G, index, 0, 1, Q, "ct-red");
          else band(bands, G, 0, index, P, 1, "ct-red");
        }
      }
    }

    function update() {
      for (const layer of [bands, labels, path, handles]) layer.replaceChildren();
      cells.flat().forEach(({ cell }) => cell.classList.remove("ct-used"));
      const passed = turns(rows, columns), n = rows.length;
      for (const [i, a] of passed) cells[i][a].cell.classList.add("ct-used");
      drawLabels(rows, "i", true);
      drawLabels(columns, "α", false);
      drawPath();
      rows.forEach((_, l) => drawHandle(l));
      speak(passed, n);
    }

    function speak(passed, n) {
      const [p, q] = [pattern(rows), pattern(columns)], truth = d ** (1 - n);
      const value = cycleProduct(phi, rows, columns), found = expectation(p, q);
      const part = share(p, q, P, Q), expected = evaluate(found, d);
      place.dataset.state = JSON.stringify({
        phi, rows, columns, value, expected, share: part, truth, d, repeats: repeats(),
      });
      said.replaceChildren();
      const names = rows.map((_, l) => `i${below(l + 1)} → α${below(l + 1)} → `).join("") + "i₁";
      const listed = (list) => list.map((k) => k + 1).join(", ");
      const places = `rows ${listed(rows)}; columns ${listed(columns)}`;
      add(said, "p", { class: "ct-route" }, `${names}:  ${places}`);
      const factors = passed.map(([i, a]) => show(phi[i][a], 1)).join(" · ");
      add(said, "p", { class: "ct-product" }, `product ${factors} = ${show(value, 4)}`);
      const verdict = add(said, "p", { class: repeats() ? "ct-verdict ct-bad" : "ct-verdict" });
      const power = `d${above(1 - n).replace("-", "⁻")}`;
      if (!repeats()) {
        const up = (list) => list.every((v, l) => l === 0 || v > list[l - 1]);
        verdict.textContent =
          `No row and no column comes twice. Expectation: m(${n}) = ${power} = ${show(truth, 4)}, ` +
          "whatever P and Q." +
          (up(rows) && up(columns) ? " Rows and columns increase: the paper's estimator uses it." : "");
        return;
      }
      verdict.textContent =
        `${coincide("i", rows)}${coincide("α", columns)}expectation ${polynomial(found)} = ` +
        `${show(expected, 4)} instead of m(${n}) = ${power} = ${show(truth, 4)}. Of all cycles that ` +
        `naive averages, ${show(100 * part, 2)} % repeat in just this way. ` +
        `Their bias term: ${show(part, 4)} · (${show(expected, 4)} − ${show(truth, 4)}) = ` +
        `${show(part * (expected - truth), 4)}.`;
    }

    function coincide(letter, list) {
      const groups = [...new Set(list)]
        .map((v) => list.flatMap((w, l) => (w === v ? [letter + below(l + 1)] : [])))
        .filter((group) => group.length > 1);
      return groups.map((group) => `${group.join(" = ")}; `).join("");
    }

    update();
  }

  // ------------------------------------------------------------ part: spread
  function spread(place) {
    const settings = { P: 10, Q: 20, n: 2, d: 5 }, DOTS = 200, DRAWS = { 2: 200, 3: 2000, 4: 2000 };
    const controls = add(place, "div", { class: "ct-controls" });
    const size = (value) => ({ min: 4, max: 40, value });
    const change = (name) => (value) => {
      settings[name] = value;
      start();
    };
    slider(controls, "rows P", "P", size(settings.P), change("P"));
    slider(controls, "columns Q", "Q", size(settings.Q), change("Q"));
    slider(controls, "order n", "n", { min: 2, max: 4, value: settings.n }, change("n"));
    slider(controls, "rank d", "d", { min: 1, max: 20, value: settings.d }, change("d"));
    const figure = add(place, "div");
    const table = add(place, "div", { class: "ct-table" });
    let ticket = 0;

    // the work is cut into short pieces, and dropped when a slider moves on
    function start() {
      const mine = (ticket += 1), { P, Q, n, d } = settings, random = generator(SEED), draws = DRAWS[n];
      const drawn = Object.fromEntries(Object.keys(ESTIMATORS).map((name) => [name, []]));
      const expected = {
        naive: naiveExpectation(P, Q, n, d) * d ** (n - 1),
        kv_row: kvExpectation(Q, n, d) * d ** (n - 1),
        kv_col: kvExpectation(P, n, d) * d ** (n - 1),
        increasing: 1,
      };
      place.dataset.done = "";
      figure.setAttribute("aria-busy", true);
      (function some() {
        if (mine !== ticket) return;
        const until = performance.now() + 20;
        while (drawn.naive.length < draws && performance.now() < until) {
          const values = oneDraw(P, Q, n, d, random);
          for (const name in values) drawn[name].push(values[name]);
        }
        if (drawn.naive.length < draws) return void setTimeout(some, 0);
        figure.setAttribute("aria-busy", false);
        draw(drawn, expected);
        place.dataset.done = JSON.stringify({ ...settings, draws, seed: SEED, expected });
      })();
    }

    function draw(drawn, expected) {
      figure.replaceChildren();
      table.replaceChildren();
      const [W, ROW, left, right, top] = [620, 46, 104, 12, 8], names = Object.keys(drawn);
      const height = top + names.length * ROW + 34, all = Object.values(drawn).flat();
      const sorted = all.slice().sort((a, b) => a - b), at = (q) => sorted[Math.floor(q * (all.length - 1))];
      const low = Math.asinh(Math.min(-0.5, at(0.005))), high = Math.asinh(Math.max(2.5, at(0.995)));
      const x = (value) => {
        const t = (Math.asinh(value) - low) / (high - low);
        return left + (W - left - right) * Math.max(0, Math.min(1, t));
      };
      const svg = add(figure, "svg", {
        viewBox: `0 0 ${W} ${height}`, class: "ct-plot", role: "img",
        "aria-label": "estimates over the truth, one row of dots for each estimator",
      });
      const base = top + names.length * ROW;
      for (const tick of [-1000, -100, -10, -1, 0, 1, 2, 5, 10, 100, 1000, 10000]) {
        if (Math.asinh(tick) < low || Math.asinh(tick) > high) continue;
        add(svg, "line", { x1: x(tick), x2: x(tick), y1: top, y2: base, class: "ct-tick" });
        add(svg, "text", { x: x(tick), y: base + 14 }, show(tick, 0));
      }
      add(svg, "text", { x: (left + W) / 2, y: base + 29 }, "estimate / m(n)");
      add(svg, "line", { x1: x(1), x2: x(1), y1: top, y2: base, class: "ct-truth" });
      const jitter = generator(1);
      names.forEach((name, r) => {
        const y = top + (r + 0.5) * ROW, group = add(svg, "g", { class: `ct-${name}` });
        add(svg, "text", { x: left - 8, y: y + 4, class: "ct-name" }, ESTIMATORS[name].label);
        for (const value of drawn[name].slice(0, DOTS)) {
          add(group, "circle", { cx: x(value), cy: y + (jitter() - 0.5) * 26, r: 2.2, class: "ct-dot" });
        }
        const { mean, error } = meanAndSpread(drawn[name]);
        add(group, "line", { x1: x(mean), x2: x(mean), y1: y - 17, y2: y + 17, class: "ct-mean" });
        add(group, "line", {
          x1: x(mean - 2 * error), x2: x(mean + 2 * error), y1: y, y2: y, class: "ct-mean",
        });
      });
      const html = add(table, "table", { class: "table" });
      const head = add(add(html, "thead"), "tr");
      for (const word of ["over m(n)", "mean", "± error", "spread", "exact mean"]) add(head, "th", {}, word);
      const body = add(html, "tbody");
      for (const name of names) {
        const row = add(body, "tr", { "data-method": name }), s = meanAndSpread(drawn[name]);
        add(row, "th", {}, ESTIMATORS[name].label);
        for (const key of ["mean", "error", "spread"]) add(row, "td", { "data-key": key }, show(s[key], 3));
        add(row, "td", { "data-key": "exact" }, name === "increasing" ? "1" : show(expected[name], 3));
      }
    }
    start();
  }

  // ------------------------------------------------------------- part: sweep
  function sweep(place) {
    const G = PLAIN, P = 5, Q = 6, nMax = 3, phi = smallMatrix(P, Q, 3, SEED + 2);
    let h = 0, S, steps, at = 0, timer = null;
    const controls = add(place, "div", { class: "ct-controls" });
    buttons(controls, "start row h", ["1", "2", "3", "4"], "1", (value) => {
      h = Number(value) - 1;
      prepare();
    });
    const moves = add(controls, "div", { class: "ct-choice" });
    const press = (text, label, react) => {
      const button = add(moves, "button", { type: "button", "aria-label": label }, text);
      button.addEventListener("click", react);
      return button;
    };
    press("◀", "one entry back", () => go(at - 1));
    press("▶", "one entry on", () => go(at + 1));
    const play = press("play", "play or pause", () => (timer ? stop() : run()));
    play.hidden = calm.matches;
    calm.addEventListener("change", () => {
      stop();
      play.hidden = calm.matches;
    });
    const range = slider(controls, "entry", "step", { min: 0, max: 1, value: 0 }, (v) => {
      stop();
      go(v);
    });
    const boxes = add(place, "div", { class: "ct-three" });
    const panel = (label) => {
      const box = add(boxes, "figure"), title = add(box, "figcaption");
      return { title, ...grid(box, G, P, Q, label) };
    };
    const panels = [panel("matrix"), panel("partial sums before"), panel("partial sums being filled")];
    const said = add(place, "div", { class: "ct-said", "aria-live": "polite" });

    const run = () => {
      if (at === steps.length) at = 0;
      play.textContent = "pause";
      timer = setInterval(() => (at < steps.length ? go(at + 1) : stop()), 450);
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = "play";
    };

    // every entry that is filled, in the order of the algorithm
    function prepare() {
      stop();
      S = staircases(phi, h, nMax);
      steps = [];
      for (let k = 2; k <= nMax; k++) {
        for (let a = h + k - 1; a < P; a++) {
          for (let b = k - 1; b < Q; b++) steps.push([k, a, b]);
        }
      }
      range.max = steps.length;
      go(0);
    }

    function fill({ cells, bands }, values, digits, visible) {
      bands.replaceChildren();
      cells.forEach((row, i) => row.forEach(({ cell, text }, a) => {
        cell.classList.remove("ct-used", "ct-now");
        text.textContent = visible(i, a) ? show(values[i][a], digits) : "";
      }));
    }

    function go(to) {
      at = Math.max(0, Math.min(steps.length, to));
      range.value = at;
      range.nextSibling.textContent = `${at}`;
      const [k, a, b] = at ? steps[at - 1] : [2, -1, -1], [left, middle, right] = panels;
      const done = (i, j) => i < a || (i === a && j <= b);
      fill(left, phi, 1, () => true);
      fill(middle, S[k - 1], 2, (i, j) => S[k - 1][i][j] !== 0);
      fill(right, S[k], 2, (i, j) => done(i, j) && i >= h + k - 1 && j >= k - 1);
      left.title.textContent = "Φ";
      middle.title.textContent = `S[${k - 1}]`;
      right.title.textContent = `S[${k}]`;
      said.replaceChildren();
      if (at) {
        band(middle.bands, G, 0, 0, a, b, "ct-blue");
        band(left.bands, G, a, 0, 1, b, "ct-blue");
        left.cells[a][b].cell.classList.add("ct-now");
        right.cells[a][b].cell.classList.add("ct-now");
        const inside = S[k][a][b] / phi[a][b], [row, column] = [a + 1, b + 1];
        add(said, "p", {},
          `Row ${row}, column ${column}: what ends above and to the left in S[${k - 1}] steps down ` +
          `into row ${row}, ${show(inside, 3)} in all, and along to column ${column}: ` +
          `times ${show(phi[a][b], 1)} is S[${k}] = ${show(S[k][a][b], 3)}.`);
      } else {
        add(said, "p", {}, `S[1] is row ${h + 1} of Φ, where the cycles start; nothing is filled yet.`);
      }
      report();
    }

    // what each start row gives, and the estimates, once an order is complete
    function report() {
      const estimates = increasing(phi, nMax), orders = [];
      for (let k = 2; k <= nMax; k++) {
        const last = steps.reduce((found, step, i) => (step[0] === k ? i + 1 : found), 0);
        if (!last || at < last) continue;
        orders.push(k);
        const parts = phi.map((_, g) => closed(phi, staircases(phi, g, k)[k], g));
        add(said, "p", { class: "ct-sum", "data-order": k },
          `Order ${k} is filled. Closed by row ${h + 1} of Φ it gives ${show(parts[h], 3)}. ` +
          `All start rows: ${parts.map((v) => show(v, 3)).join(", ")}. Their sum over ` +
          `${choose(P, k)} · ${choose(Q, k)} cycles is m̂(${k}) = ${show(estimates[k - 1], 4)}.`);
      }
      place.dataset.state = JSON.stringify({
        phi, h, at, steps: steps.length, S: S.slice(1), estimates, orders,
      });
    }
    prepare();
  }

  const PARTS = { walk, spread, sweep };
  function begin() {
    for (const place of document.querySelectorAll(".cycles-touch[data-part]")) {
      place.replaceChildren();
      PARTS[place.dataset.part](place);
    }
  }
  root.CyclesToTouch = { ...formulas, add };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})(typeof window === "undefined" ? globalThis : window);
