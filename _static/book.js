/* Three comforts of the pages: figures that open at the size of the window (click, tap, or Enter on
   one; Escape or a click closes), formulas that are not parted from a bracket or a full stop at the
   end of a line, and edges that fade where a wide formula or table goes on. */
(function () {
  "use strict";
  function open(image) {
    const dialog = document.createElement("dialog"), large = image.cloneNode();
    dialog.className = "figure-zoom";
    dialog.setAttribute("aria-label", image.alt || "figure");
    for (const name of ["width", "height", "style", "tabindex", "role", "title"]) large.removeAttribute(name);
    large.classList.remove("figure-opens");
    dialog.append(large);
    dialog.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      image.focus({ preventScroll: true });
    });
    document.body.append(dialog);
    dialog.showModal();
  }
  function figures() {
    const images = document.querySelectorAll("article figure img, article .cell_output img");
    for (const image of images) {
      if (image.closest("a")) continue;
      image.classList.add("figure-opens");
      image.tabIndex = 0;
      image.setAttribute("role", "button");
      image.title = "click to enlarge";
      image.addEventListener("click", () => open(image));
      image.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        open(image);
      });
    }
  }

  function keep() {
    for (const formula of document.querySelectorAll("article :not(td, th) > span.math")) {
      const [before, after] = [formula.previousSibling, formula.nextSibling];
      const part = (node, pattern) => (node && node.nodeType === Node.TEXT_NODE ? node.data.match(pattern) : null);
      const opening = part(before, /[([]$/), closing = part(after, /^[.,;:!?)\]]+/);
      if (!opening && !closing) continue;
      const whole = document.createElement("span");
      whole.className = "keeps";
      formula.replaceWith(whole);
      whole.append(opening ? opening[0] : "", formula, closing ? closing[0] : "");
      if (opening) before.data = before.data.slice(0, -1);
      if (closing) after.data = after.data.slice(closing[0].length);
    }
  }

  const WIDE = "article div.math mjx-container, article .pst-scrollable-table-container, " +
    "article .cell_output pre, article .highlight pre";
  function mark(box) {
    const rest = box.scrollWidth - box.clientWidth - box.scrollLeft;
    box.classList.toggle("more-left", box.scrollLeft > 2);
    box.classList.toggle("more-right", rest > 2);
    if (box.scrollWidth > box.clientWidth + 2) box.tabIndex = 0; // arrow keys scroll it
  }
  function edges() {
    // a formula is a stop of the Tab key only where it scrolls
    for (const formula of document.querySelectorAll("article mjx-container")) formula.tabIndex = -1;
    const watch = new ResizeObserver((entries) => entries.forEach((e) => mark(e.target)));
    for (const box of document.querySelectorAll(WIDE)) {
      box.addEventListener("scroll", () => mark(box), { passive: true });
      watch.observe(box);
    }
  }

  function begin() {
    figures();
    const formulas = window.MathJax && window.MathJax.startup && window.MathJax.startup.promise;
    Promise.resolve(formulas).then(keep).then(edges);
  }
  if (document.readyState === "complete") begin();
  else window.addEventListener("load", begin);
})();
