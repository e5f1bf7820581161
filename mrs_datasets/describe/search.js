// A box that shows only the rows of tables that have all its words, and opens the folded tables with such rows.
const box = document.createElement("input"), found = document.createElement("output");
box.type = "search";
box.id = "search";
box.placeholder = "Search the rows";
box.setAttribute("aria-label", box.placeholder);
found.id = "found";
document.querySelector("nav").after(box, " ", found);
const rows = [...document.querySelectorAll("tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const [row, text] of rows) {
    row.hidden = !words.every((word) => text.includes(word));
    count += !row.hidden;
  }
  for (const part of document.querySelectorAll("details")) {
    part.open = words.length > 0 && part.querySelector("tbody tr:not([hidden])") !== null;
  }
  found.value = words.length ? `${count} of ${rows.length} rows` : "";
});
