// Lights what a word draws on, or what draws on it. The listeners sit on the document, so that they also serve
// heat maps that are put on the page later.
(() => {
  const NAMED = 4; // partners named in the line above the table
  const FAINT = 0.01; // weights below this are not named

  // The header on the other side and the cell between, for every partner of a word (a row or a column header).
  function partners(table, word) {
    const rows = [...table.tBodies[0].rows];
    if (word.dataset.row === undefined) {
      const column = Number(word.dataset.column) + 1;
      return rows.map((row) => ({ header: row.cells[0], cell: row.cells[column] }));
    }
    const headers = [...table.tHead.rows[0].cells].slice(1);
    const cells = [...rows[Number(word.dataset.row)].cells].slice(1);
    return headers.map((header, column) => ({ header, cell: cells[column] }));
  }

  const weightOf = (element) => Number(element.style.getPropertyValue("--w"));

  function sentence(word, headers) {
    const named = headers
      .filter((header) => weightOf(header) >= FAINT)
      .sort((a, b) => weightOf(b) - weightOf(a))
      .slice(0, NAMED)
      .map((header) => `${header.textContent} ${weightOf(header).toFixed(2)}`);
    const verb = word.dataset.row === undefined ? "is drawn on by" : "draws on";
    const header = word.cells ? word.cells[0] : word;
    return `“${header.textContent}” ${verb}: ${named.join(", ") || "nothing here"}`;
  }

  function clear() {
    for (const element of document.querySelectorAll(".heatmap .lit, .heatmap .pointed")) {
      element.classList.remove("lit", "pointed");
    }
    for (const line of document.querySelectorAll(".heatmap output")) line.textContent = line.dataset.hint;
  }

  function light(word) {
    const map = word.closest(".heatmap");
    const found = partners(map.querySelector("table"), word);
    for (const { header, cell } of found) {
      header.style.setProperty("--w", weightOf(cell));
      header.classList.toggle("strong", cell.classList.contains("strong"));
      header.classList.add("lit");
      cell.classList.add("lit");
    }
    (word.cells ? word.cells[0] : word).classList.add("pointed");
    map.querySelector("output").textContent = sentence(word, found.map(({ header }) => header));
  }

  const wordAt = (element) => element?.closest?.(".heatmap [data-row], .heatmap [data-column]");

  // Away from every word, the one that has the keyboard's focus (or was tapped or clicked) stays lit.
  function follow(event) {
    clear();
    const word = wordAt(event.target) ?? wordAt(document.activeElement);
    if (word) light(word);
  }

  document.addEventListener("pointerover", follow);
  document.addEventListener("focusin", follow);
  document.addEventListener("focusout", clear);
})();
