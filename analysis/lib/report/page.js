/* What the page of a program's state does beside following links: tables are sorted, and a line of the source shows which
   variables' reasons pass through it. Without it the page still shows source, table and reasons. */
"use strict";

function sortBy(table, column, header) {
    const descending = header.getAttribute("aria-sort") === "ascending";
    const text = (row) => row.cells[column].textContent;
    const order = new Intl.Collator(undefined, { numeric: true });
    const rows = Array.from(table.tBodies[0].rows);
    rows.sort((a, b) => order.compare(text(a), text(b)) * (descending ? -1 : 1));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table")) {
    Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...header.childNodes);
        header.append(button);
        button.addEventListener("click", () => sortBy(table, column, header));
    });
}

/* Which sections tell of a line: those that link to it. */
const passing = new Map();
for (const link of document.querySelectorAll("aside section a")) {
    const line = link.hash.slice(1);
    if (!passing.has(line)) passing.set(line, new Set());
    passing.get(line).add(link.closest("section"));
}

function show() {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = name ? document.getElementById(name) : null;
    if (!target) return;
    const sections = target.matches("aside section") ? new Set([target]) : passing.get(name);
    if (!sections) return;
    for (const section of document.querySelectorAll("aside section")) {
        section.classList.toggle("shown", sections.has(section));
    }
}

addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const section of document.querySelectorAll("aside section")) section.classList.remove("shown");
    history.replaceState(null, "", location.pathname + location.search);
});
show();
