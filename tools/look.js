// What is wrong with the page in the browser; run by look.py, returns [problems, faint text].
const found = [], width = document.documentElement.clientWidth;
const name = e => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "")
    + (typeof e.className === "string" && e.className
       ? "." + e.className.trim().split(/\s+/).join(".") : "");
const shows = e => e.checkVisibility({visibilityProperty: true, opacityProperty: true});
const scrolls = e => e && e !== document.body && e !== document.documentElement
    && (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(e).overflowX)
        || scrolls(e.parentElement));
const article = document.querySelector("article") || document.body;
if (document.documentElement.scrollWidth > width + 1) found.push("the page is wider than the window");
for (const e of article.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > width + 1 && shows(e) && !scrolls(e.parentElement)
        && !e.closest("mjx-assistive-mml, .headerlink, svg"))
        found.push("sticks out: " + name(e) + " " + e.textContent.trim().slice(0, 50));
}
if (width > 1000)
    for (const e of article.querySelectorAll("pre, div.math, table, .output"))
        if (e.scrollWidth > e.clientWidth + 1 && shows(e) && getComputedStyle(e).display !== "inline")
            found.push("scrolls sideways: " + name(e) + " " + e.scrollWidth + " in " + e.clientWidth
                + " " + e.textContent.trim().slice(0, 60));
for (const e of article.querySelectorAll("span.math:has(mjx-math)")) {
    const right = e.querySelector("mjx-math").getBoundingClientRect().right;
    if (right > e.getBoundingClientRect().right + 1 && getComputedStyle(e).overflowX === "hidden")
        found.push("formula cut off in: " + e.parentElement.textContent.trim().slice(0, 60));
}
for (const e of article.querySelectorAll("mjx-merror, [data-mjx-error], merror"))
    found.push("equation failed: " + e.textContent.slice(0, 60));
for (const e of document.images)
    if (shows(e) && !(e.complete && e.naturalWidth)) found.push("broken image " + e.src);
const light = c => {
    const f = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]);
};
const rgba = s => { const v = s.match(/[\d.]+/g).map(Number);
    if (s.startsWith("color(")) return [...v.slice(0, 3).map(x => 255 * x), v[3] ?? 1];
    return [v[0], v[1], v[2], v[3] ?? 1]; };
const ground = e => { for (; e; e = e.parentElement) {
    const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 0.5) return c; }
    return [255, 255, 255, 1]; };
const walk = document.createTreeWalker(article, NodeFilter.SHOW_TEXT), faint = new Set();
for (let node; (node = walk.nextNode());) {
    const e = node.parentElement, text = node.textContent.trim();
    if (!text || !shows(e) || e.closest("script, style, mjx-assistive-mml, .headerlink, kbd, .search-button__kbd-shortcut")) continue;
    if (!e.closest("pre, code, mjx-container")
        && /\$\S[^$]*\$|\\operatorname|\\begin\{|\\mathbb|\\frac|\{(cite|numref|eq|ref|prf)/.test(text))
        found.push("raw markup: " + text.slice(0, 80));
    const a = light(rgba(getComputedStyle(e).color)), b = light(ground(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.0 && e.getBoundingClientRect().width > 1)
        faint.add("contrast " + contrast.toFixed(1) + ": " + name(e) + " " + text.slice(0, 30));
}
return [found, [...faint]];
