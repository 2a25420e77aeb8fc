/* Your own matrix: read a file, the dimension with its interval, and a sweep over columns. Plain
   JavaScript, no network: nothing leaves the machine. The first half is files and formulas, which
   run without a page too (node); the second half draws. Random numbers are those of cycles.js. */
(function (root) {
  "use strict";
  const draws = () => root.CyclesToTouch || require("./cycles.js");

  // ------------------------------------------------------------------ files
  // A matrix is { P, Q, data, notes }: rows one after the other, and what was done to read it.
  const LEAST = { rows: 5, columns: 3 }; // leaving out one must leave enough for m(2)
  const BYTES = 64e6, PRODUCTS = 2e9; // of a file; of the shorter side twice and the longer once
  class Refused extends Error {}
  const refuse = (words) => { throw new Refused(words); };

  function checkSize(P, Q) {
    if (P < LEAST.rows || Q < LEAST.columns) {
      refuse(`This is ${P} × ${Q}: too small. It takes at least ${LEAST.rows} rows and ` +
        `${LEAST.columns} columns to leave one out and still see a dimension.`);
    }
    if (Math.min(P, Q) * P * Q > PRODUCTS) {
      refuse(`This is ${P} × ${Q}: too large for a browser, where 1200 × 1200 or 400 × 10000 is ` +
        "the limit. Take some of the rows or columns at random, or the library: sm.estimate(phi, 2).");
    }
  }

  // Entries that are no numbers are refused, by their place.
  function checked(matrix, place = (k) => `row ${Math.floor(k / matrix.Q) + 1}, column ${(k % matrix.Q) + 1}`) {
    const bad = matrix.data.findIndex((value) => !Number.isFinite(value));
    if (bad < 0) return matrix;
    const what = Number.isNaN(matrix.data[bad]) ? "missing (NaN)" : "infinite or beyond the range of doubles";
    return refuse(`The entry at ${place(bad)} is ${what}. This page needs every entry; ` +
      "the library takes matrices with gaps, NaN where nothing was measured.");
  }

  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const MISSING = /^(nan|na|n\/a|null|none)?$/i, INFINITE = /^[+-]?inf(inity)?$/i;
  const isWord = (cell) => ![NUMBER, MISSING, INFINITE].some((kind) => kind.test(cell));
  const counts = (cells, start) => cells.every((cell, k) => cell === String(start + k));

  // Text: commas, semicolons, tabs or spaces; names of columns and of rows are left out.
  function readText(text) {
    const lines = text.replace(/^\ufeff/, "").split(/\r\n|\n|\r/).map((line, k) => ({ line, at: k + 1 }))
      .filter(({ line }) => line.trim() && !line.trimStart().startsWith("#"));
    if (!lines.length) refuse("There is nothing here to read.");
    if (text.includes("\0")) refuse("This is neither text nor a .npy file. Save the matrix as CSV or by np.save.");
    const mark = [";", "\t", ","].find((m) => lines[0].line.includes(m)), notes = [];
    const comma = mark === ";"; // then 1,5 is one and a half
    const split = ({ line, at }) => {
      const plain = line.replace(/"([^"]*)"/g, (_, inside) => inside.replaceAll(mark || " ", "_"));
      const cells = mark ? plain.split(mark).map((c) => c.trim()) : plain.trim().split(/\s+/);
      return { at, cells: comma ? cells.map((c) => c.replace(",", ".")) : cells };
    };
    let rows = lines.map(split), head = null, first = 0;
    const [corner, ...rest] = rows[0].cells;
    if (!rest.length) refuse("The first line has one entry only. Put commas, semicolons, tabs or spaces between them.");
    if (rest.every(isWord) || counts(corner === "" ? rest : rows[0].cells, 0)) {
      head = rows.shift().cells;
      notes.push("The first line was taken as names of the columns.");
    }
    if (!rows.length) refuse("There is only one line, and it has no numbers.");
    const width = rows[0].cells.length, starts = rows.map(({ cells }) => cells[0]);
    const indexed = starts.every(isWord) || counts(starts, 0) || counts(starts, 1);
    if (indexed || (head && (corner === "" || head.length === width - 1))) {
      first = 1;
      notes.push("The first column was taken as names of the rows.");
    }
    const P = rows.length, Q = width - first, data = new Float64Array(P * Q);
    rows.forEach(({ at, cells }, i) => {
      if (cells.length !== width) {
        refuse(`Line ${at} has ${cells.length} entries, the lines before it have ${width}. ` +
          "All rows must be equally long.");
      }
      for (let a = 0; a < Q; a++) {
        const cell = cells[a + first];
        if (isWord(cell)) refuse(`Line ${at}, entry ${a + first + 1}: “${cell.slice(0, 20)}” is not a number` +
          (/^[+-]?\d+,\d+$/.test(cell) ? "; with a decimal point it is." : "."));
        data[i * Q + a] = MISSING.test(cell) ? NaN : INFINITE.test(cell) ? Infinity : Number(cell);
      }
    });
    return checked({ P, Q, data, notes }, (k) => `line ${rows[Math.floor(k / Q)].at}, entry ${(k % Q) + first + 1}`);
  }

  // Sixteen bits: sign, five of the exponent, ten of the fraction.
  function half(bits) {
    const sign = bits >> 15 ? -1 : 1, power = (bits >> 10) & 31, part = bits & 1023;
    if (power === 31) return part ? NaN : sign * Infinity;
    return sign * (power ? (1 + part / 1024) * 2 ** (power - 15) : part * 2 ** -24);
  }
  const TYPES = {
    f8: "getFloat64", f4: "getFloat32", f2: "getUint16", i1: "getInt8", i2: "getInt16", i4: "getInt32",
    i8: "getBigInt64", u1: "getUint8", u2: "getUint16", u4: "getUint32", u8: "getBigUint64", b1: "getUint8",
  };

  // What np.save writes, rows or columns first, either order of bytes.
  function readNpy(buffer) {
    const view = new DataView(buffer), long = view.getUint8(6) > 1, begin = long ? 12 : 10;
    const length = long ? view.getUint32(8, true) : view.getUint16(8, true);
    const text = new TextDecoder("latin1").decode(new Uint8Array(buffer).subarray(begin, begin + length));
    const [type, shape] = [/'descr': *'([^']*)'/, /'shape': *\(([^)]*)\)/].map((part) => part.exec(text)?.[1]);
    if (shape === undefined) refuse("The header of this .npy file is damaged.");
    const sizes = shape.split(",").filter((n) => n.trim()).map((n) => parseInt(n, 10));
    if (sizes.length !== 2) {
      refuse(`This array has ${sizes.length} axes (${sizes.join(" × ")}). This page reads matrices, rows × columns` +
        (sizes.length === 3 ? "; the library takes trials × rows × columns, and uses them to remove noise." : "."));
    }
    const kind = (type || "").slice(1), get = TYPES[kind];
    if (!get) refuse(`Entries of the type ${type || "record"} cannot be read here: np.save(name, phi.astype(float)).`);
    const [P, Q] = sizes, size = Number(kind[1]), start = begin + length, little = type[0] !== ">";
    if (buffer.byteLength < start + P * Q * size) refuse("This .npy file ends too early: it was cut off.");
    const columnsFirst = /'fortran_order': *True/.test(text), data = new Float64Array(P * Q);
    for (let k = 0; k < P * Q; k++) {
      const value = Number(view[get](start + k * size, little));
      data[columnsFirst ? (k % P) * Q + Math.floor(k / P) : k] = kind === "f2" ? half(value) : value;
    }
    return checked({ P, Q, data, notes: [] });
  }

  function readBytes(buffer) {
    if (buffer.byteLength > BYTES) {
      refuse(`This file has ${Math.round(buffer.byteLength / 1e6)} MB; the limit here is ${BYTES / 1e6} MB.`);
    }
    const start = String.fromCharCode(...new Uint8Array(buffer, 0, Math.min(6, buffer.byteLength)));
    if (start === "\x93NUMPY" && buffer.byteLength > 12) return readNpy(buffer);
    if (start.startsWith("PK")) refuse("This is an archive (.npz, .xlsx, .zip). Save one matrix as CSV or by np.save.");
    return readText(new TextDecoder().decode(buffer));
  }

  function transposed({ P, Q, data, notes }) {
    const flipped = new Float64Array(P * Q);
    for (let i = 0; i < P; i++) for (let a = 0; a < Q; a++) flipped[a * P + i] = data[i * Q + a];
    return { P: Q, Q: P, data: flipped, notes };
  }

  // --------------------------------------------------------------- formulas
  // Columns without their means, in units of the largest entry: no dimension depends on these.
  function centred({ P, Q, data }) {
    checkSize(P, Q);
    const largest = (x) => x.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
    let unit = largest(data);
    const x = data.map((value) => value / unit);
    for (let a = 0; a < Q; a++) {
      for (let again = 0; again < 2; again++) { // the second time for what rounding left
        let mean = 0;
        for (let i = 0; i < P; i++) mean += x[i * Q + a] / P;
        for (let i = 0; i < P; i++) x[i * Q + a] -= mean;
      }
    }
    unit = largest(x);
    if (unit < 1e-13) refuse("All rows are the same: without their mean nothing is left to measure.");
    return { P, Q, data: x.map((value) => value / unit) };
  }

  function chosen({ P, Q, data }, columns) {
    const part = new Float64Array(P * columns.length);
    for (let i = 0, k = 0; i < P; i++) for (const a of columns) part[k++] = data[i * Q + a];
    return { P, Q: columns.length, data: part };
  }

  // Products of all rows of an n x m matrix, n x n.
  function gram(x, n, m) {
    const G = new Float64Array(n * n);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        let even = 0, odd = 0, k = i * m, l = j * m;
        const end = k + m - (m % 2);
        while (k < end) {
          even += x[k++] * x[l++];
          odd += x[k++] * x[l++];
        }
        if (m % 2) even += x[k] * x[l];
        G[i * n + j] = G[j * n + i] = even + odd;
      }
    }
    return G;
  }

  // With K = X X', C = X' X of centred columns: the five sums that m(1) and m(2) are made of.
  // T: trace. F: sum of K_ij^2, or of C_ab^2. V, R: of C_aa^2, of K_ii^2. X: of entries^4.
  function sums({ P, Q, data: x }) {
    const v = new Float64Array(Q), r = new Float64Array(P), short = P <= Q;
    const flipped = short ? null : transposed({ P, Q, data: x }).data;
    const G = short ? gram(x, P, Q) : gram(flipped, Q, P);
    let [T, F, V, R, X] = [0, 0, 0, 0, 0];
    for (let k = 0; k < x.length; k++) {
      const square = x[k] * x[k];
      r[Math.floor(k / Q)] += square;
      v[k % Q] += square;
      X += square * square;
    }
    for (const value of G) F += value * value;
    for (const value of v) V += value * value;
    for (const value of r) [T, R] = [T + value, R + value * value];
    return { T, F, V, R, X, TT: T * T, v, r, G };
  }

  // The mean over columns a != b of the unbiased estimate of C_ab^2 from distinct rows,
  //   [C_ab^2 / P(P-3) - sum_i x_ia^2 x_ib^2 / (P-2)(P-3) + C_aa C_bb / P(P-1)(P-2)(P-3)].
  function second(P, Q, { F, V, R, X, TT }) {
    const [two, three] = [(P - 2) * (P - 3), P * (P - 3)];
    return ((F - V) / three - (R - X) / two + (TT - V) / (P * (P - 1) * two)) / (Q * (Q - 1));
  }
  const first = (P, Q, T) => T / (Q * (P - 1));
  // 1 / D = m(2) / m(1)^2, on which scale the dimension is nearly linear in the moments
  const inverse = (P, Q, s) => second(P, Q, { ...s, TT: s.T * s.T }) / first(P, Q, s.T) ** 2;

  // Diagonals of K^2 and C^2: what each row and each column has in F.
  function squares({ P, Q, data: x }, G) {
    const n = Math.min(P, Q), own = new Float64Array(n), others = new Float64Array(Math.max(P, Q));
    const y = P <= Q ? transposed({ P, Q, data: x }).data : x; // the longer side, by its units
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) own[i] += G[i * n + j] ** 2;
    others.forEach((_, k) => {
      for (let i = 0; i < n; i++) {
        let along = 0;
        for (let j = 0; j < i; j++) along += G[i * n + j] * y[k * n + j];
        others[k] += y[k * n + i] * (2 * along + G[i * n + i] * y[k * n + i]);
      }
    });
    return P <= Q ? [own, others] : [others, own];
  }

  // 1 / D without each column: the five sums without it.
  function withoutColumns({ P, Q, data: x }, s, cc) {
    return Array.from(cc, (c, a) => {
      let [meets, fourth] = [0, 0];
      for (let i = 0; i < P; i++) {
        const square = x[i * Q + a] ** 2;
        meets += s.r[i] * square;
        fourth += square * square;
      }
      const v = s.v[a], left = { T: s.T - v, F: s.F - 2 * c + v * v, V: s.V - v * v };
      return inverse(P, Q - 1, { ...left, R: s.R - 2 * meets + fourth, X: s.X - fourth });
    });
  }

  // 1 / D without each row, by the derivative: the sums through row i are its share of m(2).
  function withoutRows({ P, Q, data: x }, s, kk) {
    const value = second(P, Q, s);
    return Array.from(kk, (square, i) => {
      const r = s.r[i];
      let [fourth, meets] = [0, 0];
      for (let a = 0; a < Q; a++) {
        const yy = x[i * Q + a] ** 2;
        fourth += yy * yy;
        meets += s.v[a] * yy;
      }
      const through = 2 * second(P, Q, { F: square, V: meets, R: r * r, X: fourth, TT: r * s.T });
      const m1 = first(P - 1, Q, s.T - (P / (P - 1)) * r);
      return (value - ((through - (2 * value) / P) * P) / (P - 3)) / m1 ** 2;
    });
  }

  // Student's quantile: with t = sqrt(nu) sinh(z / sqrt(nu)) its density is cosh(z / sqrt(nu))^-nu.
  function student(level, degrees) {
    const nu = Math.min(Math.max(degrees, 3), 1e6), scale = Math.sqrt(nu), N = 400;
    const density = (z) => Math.cosh(z / scale) ** -nu;
    const integral = (end) => { // Simpson's rule
      let sum = density(0) + density(end);
      for (let k = 1; k < N; k++) sum += (k % 2 ? 4 : 2) * density((k * end) / N);
      return (sum * end) / (3 * N);
    };
    const aim = level * integral(30);
    let z = 1; // below the answer, from where Newton's steps never go past it
    for (let step = 0; step < 30; step++) z += (aim - integral(z)) / density(z);
    return scale * Math.sinh(z / scale);
  }

  // Whether m(1) is seen: its standard error is below half of it. Else a dimension is 0/0.
  function seen({ P, Q }, s) {
    const rows = Array.from(s.r, (r) => first(P - 1, Q, s.T - (P / (P - 1)) * r));
    const columns = Array.from(s.v, (v) => first(P, Q - 1, s.T - v));
    const variance = (axis) => {
      const mean = axis.reduce((sum, value) => sum + value, 0) / axis.length;
      return (1 - 1 / axis.length) * axis.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    };
    return Math.sqrt(variance(rows) + variance(columns)) < first(P, Q, s.T) / 2;
  }

  // Naive and unbiased dimension, with standard error and 95% interval, as Estimate.dimension().
  function dimension(matrix, whole = centred(matrix)) {
    const { P, Q } = whole, s = sums(whole), [kk, cc] = squares(whole, s.G), plain = inverse(P, Q, s);
    const rounding = 4e-16 * inverse(P, Q, { ...s, V: 0, R: 0, X: 0 }); // of the largest of its parts
    if (rounding > 1e-3 * Math.abs(plain)) {
      refuse("Some entries are so much larger than the others that these are lost to rounding: look at them first.");
    }
    if (!seen(whole, s)) return { P, Q, naive: s.TT / s.F, value: NaN, stderr: NaN, low: NaN, high: NaN };
    const axes = [withoutRows(whole, s, kk), withoutColumns(whole, s, cc)];
    let [bias, variance, skew, spread] = [0, 0, 0, 0];
    for (const axis of axes) {
      const N = axis.length, mean = axis.reduce((sum, value) => sum + value - plain, 0) / N;
      const parts = axis.map((value) => (value - plain - mean) * Math.sqrt(1 - 1 / N));
      const power = (n) => parts.reduce((sum, u) => sum + u ** n, 0), square = power(2);
      bias += (N - 1) * mean;
      variance += square;
      skew -= power(3);
      spread += power(4) - square ** 2 / N;
    }
    const at = bias * plain > 0 ? plain / (1 + bias / plain) : plain - bias; // never past zero
    const degrees = Math.min((2 * variance ** 2) / spread, P + Q - 2) || Infinity;
    const t = student(0.95, degrees), bend = (skew / (6 * variance ** 1.5)) * t || 0;
    const error = Math.sqrt(variance), reach = (sign) => t / Math.max(1 + sign * bend, 1 / 3);
    const [bottom, top] = [at - reach(1) * error, at + reach(-1) * error];
    return {
      P, Q, naive: s.TT / s.F, value: at > 0 ? 1 / at : NaN, stderr: at > 0 ? error / at ** 2 : NaN,
      low: top > 0 ? 1 / top : NaN, high: bottom > 0 ? 1 / bottom : top > 0 ? Infinity : NaN,
    };
  }

  // Numbers of columns to look at, from all of them down by equal factors.
  function sweepSizes(Q) {
    const least = Math.min(Q, 5), count = 8;
    const sizes = Array.from({ length: count }, (_, k) => Math.round(Q * (least / Q) ** (k / (count - 1))));
    return [...new Set(sizes)].reverse();
  }

  // (m(1), m(2)), up to units that are the same for all sizes, of so many columns at random.
  function sweepDraw(whole, size, random) {
    const order = Array.from({ length: whole.Q }, (_, a) => a);
    for (let k = 0; k < size; k++) {
      const other = k + Math.floor(random() * (whole.Q - k));
      [order[k], order[other]] = [order[other], order[k]];
    }
    const columns = order.slice(0, size), part = chosen(whole, columns), { P } = part, s = sums(part);
    return { columns, naive: [s.T / size, s.F / size ** 2], unbiased: [first(P, size, s.T), second(P, size, s)] };
  }

  // Dimension of the mean moments, and the quartiles of single subsets; both by 1 / D.
  function sweepPoint(pairs) {
    const mean = (k) => pairs.reduce((sum, m) => sum + m[k], 0) / pairs.length;
    const each = pairs.map(([one, two]) => two / one ** 2).sort((a, b) => a - b);
    const quantile = (q) => {
      const at = q * (each.length - 1), k = Math.floor(at);
      const place = each[k] + (at - k) * ((each[k + 1] ?? each[k]) - each[k]);
      return place > 0 ? 1 / place : Infinity;
    };
    const line = mean(0) ** 2 / mean(1);
    return { line: line > 0 ? line : Infinity, low: quantile(0.75), high: quantile(0.25) };
  }

  const formulas = {
    checkSize, readBytes, readText, transposed, centred, dimension, student, sweepSizes, sweepDraw, sweepPoint, Refused,
  };
  if (typeof module !== "undefined" && module.exports) module.exports = formulas;
  if (!root.document) return;

  // ==================================================================== page
  const ROUNDS = 40, WORK = 3e9; // subsets of each size; products in all
  const add = (...what) => draws().add(...what);
  const show = (value, digits = 3) =>
    Number.isFinite(value) ? String(Number(value.toPrecision(digits))) : value > 0 ? "∞" : "–";

  // d dimensions of equal size, or as many as there are columns: only noise
  function example(P, Q, d, seed) {
    const { generator, drawLinear } = draws(), rows = drawLinear(P, Q, d, generator(seed));
    return { P, Q, data: Float64Array.from(rows.flat()), notes: [] };
  }
  const EXAMPLES = {
    "20 dimensions": () => ({ ...example(60, 120, 20, 3), name: "Simulated, 20 dimensions", truth: 20 }),
    "only noise": () => ({ ...example(60, 120, 4000, 5), name: "Simulated, independent noise" }),
  };

  function begin(place) {
    place.replaceChildren();
    let ticket = 0, matrix = null;
    const drop = add(place, "label", { class: "ym-drop" });
    add(drop, "span", {}, "Drop a CSV or .npy file here, or choose one: ");
    const input = add(drop, "input", { type: "file", accept: ".csv,.tsv,.txt,.npy,text/plain" });
    const controls = add(place, "div", { class: "ct-controls" });
    const tries = add(controls, "div", { class: "ct-choice", role: "group", "aria-label": "examples" });
    add(tries, "span", {}, "an example:");
    const press = (parent, text, react) => {
      const button = add(parent, "button", { type: "button" }, text);
      button.addEventListener("click", react);
    };
    for (const name in EXAMPLES) press(tries, name, () => take(EXAMPLES[name]));
    press(controls, "swap rows and columns", () => matrix && take(() => ({ ...matrix, ...transposed(matrix) })));
    const typing = add(place, "details"), field = add(typing, "label", { class: "ym-field" });
    add(typing, "summary", {}, "or type or paste numbers");
    typing.prepend(typing.lastChild);
    add(field, "span", {}, "One row on each line, entries parted by spaces, commas or tabs:");
    const text = add(field, "textarea", { rows: 9, spellcheck: "false", wrap: "off" });
    const small = example(8, 6, 2, 1);
    const digit = (value) => (Math.round(10 * value) / 10 || 0).toFixed(1).padStart(4);
    text.value = Array.from(small.data, (value, k) => digit(value) + ((k + 1) % 6 ? "  " : "\n")).join("");
    press(typing, "measure these", () => take(() => ({ ...readText(text.value), name: "Typed" })));
    const said = add(place, "div", { class: "ym-said", role: "status", "aria-live": "polite" });
    const figure = add(place, "div"), table = add(place, "div");

    input.addEventListener("change", () => {
      if (input.files[0]) open(input.files[0]);
      input.value = ""; // the same file may be chosen again
    });
    for (const kind of ["dragover", "dragleave", "drop"]) {
      place.addEventListener(kind, (event) => {
        event.preventDefault();
        drop.classList.toggle("ym-over", kind === "dragover");
        if (kind === "drop" && event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
      });
    }
    async function open(file) {
      const mine = (ticket += 1), large = file.size > BYTES;
      place.dataset.state = "";
      const bytes = large ? { byteLength: file.size } : await file.arrayBuffer();
      if (mine === ticket) take(() => ({ ...readBytes(bytes), name: file.name }));
    }

    // measure what a function gives, after the page has had time to say so
    function take(give) {
      const mine = (ticket += 1);
      place.dataset.state = "";
      for (const part of [said, figure, table]) part.replaceChildren();
      add(said, "p", {}, "computing …");
      setTimeout(() => {
        if (mine !== ticket) return;
        said.replaceChildren();
        try {
          const given = give(), whole = centred(given), found = dimension(given, whole);
          matrix = given;
          speak(found);
          sweep(mine, whole, found);
        } catch (problem) {
          const known = problem instanceof Refused;
          add(said, "p", { class: "ct-bad" }, known ? problem.message : `This cannot be read: ${problem.message}`);
          place.dataset.state = JSON.stringify({ refused: problem.message });
        }
      }, 30);
    }

    function speak({ P, Q, naive, value, stderr, low, high }) {
      add(said, "p", {}, `${matrix.name}: ${P} rows (inputs) × ${Q} columns (features). ${matrix.notes.join(" ")}`);
      const numbers = add(said, "table", { class: "ym-table" });
      add(numbers, "caption", {}, "Dimension");
      const body = add(numbers, "tbody");
      const row = (name, kind, ...cells) => {
        const line = add(body, "tr", { class: kind });
        add(line, "th", { scope: "row" }, name);
        for (const cell of cells) add(line, "td", {}, cell);
      };
      const limit = Number.isNaN(low) ? "not known" : `at least ${show(low)}`;
      const ends = high < Infinity ? `${show(low)} to ${show(high)}` : limit;
      row("naive", "ct-naive", show(naive), "");
      row("unbiased", "ym-unbiased", value > 0 ? `${show(value)} ± ${show(stderr, 2)}` : "–", `95%: ${ends}`);
      const words = add(said, "p");
      words.textContent = Number.isNaN(low) ? "The data do not tell the dimension."
        : !(value > 0) ? "The dimension is too high to be seen in a matrix of this size: only a lower limit is known."
        : !(high < Infinity) ? "There is no upper limit: more rows and columns would tell."
        : naive < low ? "The naive dimension lies below the interval: it would grow with the size of the matrix."
        : naive > high ? "The naive dimension lies above the interval."
        : "The naive dimension lies within the interval: the matrix is large enough, or too small to tell.";
    }

    // subsets of each size in short pieces, dropped when another matrix comes
    function sweep(mine, whole, found) {
      const { P, Q } = whole, sizes = sweepSizes(Q), random = draws().generator(1), drawn = sizes.map(() => []);
      const cost = sizes.slice(0, -1).reduce((sum, k) => sum + (Math.min(P, k) * P * k) / 2, 0);
      const rounds = Math.max(6, Math.min(ROUNDS, Math.floor(WORK / cost)));
      figure.setAttribute("aria-busy", true);
      (function some() {
        if (mine !== ticket) return;
        const until = performance.now() + 20;
        for (let k = 0; k < sizes.length; k++) {
          while (drawn[k].length < (sizes[k] < Q ? rounds : 1)) {
            if (performance.now() > until) return void setTimeout(some, 0);
            drawn[k].push(sweepDraw(whole, sizes[k], random));
          }
        }
        const lines = {};
        for (const name of ["naive", "unbiased"]) lines[name] = drawn.map((d) => sweepPoint(d.map((m) => m[name])));
        figure.setAttribute("aria-busy", false);
        draw(sizes, lines, found);
        list(sizes, lines, rounds);
        place.dataset.state = JSON.stringify({ ...found, sizes, lines, rounds }); // infinity becomes null
      })();
    }

    function draw(sizes, lines, { Q, value, low, high }) {
      const W = Math.max(300, Math.min(620, figure.clientWidth)), [H, left, right, top, base] = [300, 46, 20, 28, 250];
      const { naive, unbiased } = lines, full = naive.at(-1).line;
      const known = [...unbiased.map((p) => p.line), high, low, value, full, matrix.truth];
      const most = 1.1 * Math.max(...known.filter((D) => D > 0 && D < Infinity));
      const steep = most > 8 * full; // then logarithmic upwards, too
      const least = steep ? 0.9 * naive[0].line : 0, place = (D) => (steep ? Math.log(Math.max(D, least)) : D);
      const start = Math.log(sizes[0]), span = Math.log(Q) - start || 1;
      const x = (k) => left + 10 + ((W - left - right - 10) * (Math.log(k) - start)) / span;
      const y = (D) => base - ((base - top) * (place(Math.min(D, most)) - place(least))) / (place(most) - place(least));
      const svg = add(figure, "svg", { viewBox: `0 0 ${W} ${H}`, class: "ym-plot", role: "img",
        "aria-label": "dimension against the number of columns, naive and unbiased; the numbers stand below" });
      const across = (D, kind) => add(svg, "line", { x1: left, x2: W - right, y1: y(D), y2: y(D), class: kind });
      const digit = [1, 2, 5, 10].map((n) => n * 10 ** Math.floor(Math.log10(most / 4))).find((n) => most / n <= 6);
      const ticks = Array.from({ length: steep ? 12 : 7 }, (_, k) => (steep ? 10 ** k : k * digit));
      for (const tick of ticks.filter((D) => D >= least && D <= most)) {
        across(tick, "ct-tick");
        add(svg, "text", { x: left - 6, y: y(tick) + 4, class: "ct-name" }, show(tick));
      }
      for (const size of sizes) add(svg, "text", { x: x(size), y: base + 17 }, size);
      add(svg, "text", { x: (left + W) / 2, y: H - 8 }, "columns seen");
      add(svg, "text", { x: 4, y: 14, class: "ym-key" }, "dimension");
      if (matrix.truth) across(matrix.truth, "ct-truth");
      Object.entries(lines).forEach(([name, points], k) => {
        const group = add(svg, "g", { class: name === "naive" ? "ct-naive" : "ym-unbiased" });
        const path = (values) => values.map((D, j) => `${x(sizes[j])},${y(D)}`);
        const band = [...path(points.map((p) => p.high)), ...path(points.map((p) => p.low)).reverse()];
        add(group, "polygon", { points: band.join(" "), class: "ym-band" });
        add(group, "polyline", { points: path(points.map((p) => p.line)).join(" "), class: "ym-line" });
        points.forEach((p, j) => p.line <= most && add(group, "circle", { cx: x(sizes[j]), cy: y(p.line), r: 3.5 }));
        add(group, "circle", { cx: 90 + 70 * k, cy: 10, r: 5 });
        add(svg, "text", { x: 100 + 70 * k, y: 14, class: "ym-key" }, name);
        if (name === "naive" || Number.isNaN(low)) return;
        add(group, "line", { x1: x(Q), x2: x(Q), y1: y(low), y2: y(high), class: "ct-mean" });
        for (const end of [low, high].filter((D) => D <= most)) {
          add(group, "line", { x1: x(Q) - 6, x2: x(Q) + 6, y1: y(end), y2: y(end), class: "ct-mean" });
        }
      });
    }

    function list(sizes, lines, rounds) {
      const more = add(table, "details");
      add(more, "summary", {}, `the numbers (${rounds} subsets of each size)`);
      const grid = add(more, "table", { class: "ym-table" });
      const head = add(add(grid, "thead"), "tr"), body = add(grid, "tbody");
      for (const word of ["columns", "naive", "unbiased", "middle half"]) add(head, "th", { scope: "col" }, word);
      sizes.forEach((size, k) => {
        const row = add(body, "tr"), { line, low, high } = lines.unbiased[k];
        add(row, "th", { scope: "row" }, size);
        const cells = [show(lines.naive[k].line), show(line), `${show(low)} to ${show(high)}`];
        for (const cell of cells) add(row, "td", {}, cell);
      });
    }
    take(EXAMPLES["20 dimensions"]);
  }

  root.YourMatrix = formulas;
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".your-matrix").forEach(begin));
})(typeof window === "undefined" ? globalThis : window);
