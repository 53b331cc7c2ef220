// Turns clouds of points and enlarges small maps. The listeners sit on the document, so that they also serve panels
// that are put on the page later.
(() => {
  if (document.panelsListen) return; // a notebook has this script once for each view
  document.panelsListen = true;
  const RADIANS = 0.01; // a pixel of dragging
  const ARROW = 0.12; // radians a key press
  let held = null; // the cloud that is being dragged, and where the pointer was

  // As `turned` in svg.py.
  function turn(cloud, about, towards) {
    const [a, t] = cloud.dataset.turn.split(" ").map(Number);
    const angles = [a + about, Math.max(-1.5, Math.min(1.5, t + towards))];
    cloud.dataset.turn = angles.join(" ");
    const [sinA, sinT] = angles.map(Math.sin);
    const [cosA, cosT] = angles.map(Math.cos);
    for (const point of cloud.querySelectorAll(".point")) {
      const [x, y, z] = point.dataset.place.split(" ").map(Number);
      const across = x * cosA + z * sinA;
      const depth = -x * sinA + z * cosA;
      const up = y * cosT - depth * sinT;
      point.setAttribute("transform", `translate(${(100 * across).toFixed(2)} ${(-100 * up).toFixed(2)})`);
    }
  }

  document.addEventListener("pointerdown", (event) => {
    const cloud = event.target.closest?.("svg.turning");
    if (!cloud) return;
    event.preventDefault(); // or the names in it are selected as text
    cloud.focus();
    held = { cloud, x: event.clientX, y: event.clientY };
    cloud.setPointerCapture(event.pointerId);
  });
  document.addEventListener("pointermove", (event) => {
    if (!held) return;
    turn(held.cloud, (event.clientX - held.x) * RADIANS, (event.clientY - held.y) * RADIANS);
    [held.x, held.y] = [event.clientX, event.clientY];
  });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => { held = null; });

  const TURNS = { ArrowLeft: [-ARROW, 0], ArrowRight: [ARROW, 0], ArrowUp: [0, -ARROW], ArrowDown: [0, ARROW] };
  document.addEventListener("keydown", (event) => {
    const cloud = event.target.closest?.("svg.turning");
    if (!cloud || !TURNS[event.key]) return;
    event.preventDefault();
    turn(cloud, ...TURNS[event.key]);
  });

  // A panel of vectors that has the focus: arrows go from number to number, and say each.
  document.addEventListener("keydown", (event) => {
    const box = event.target.closest?.(".vectors .panel-box");
    if (!box || !TURNS[event.key]) return;
    event.preventDefault();
    const rows = [...box.querySelectorAll(".cells")].map((row) => [...row.children]);
    const last = box.querySelector(".held");
    let row = Math.max(0, rows.findIndex((cells) => cells.includes(last)));
    let place = last ? rows[row].indexOf(last) + Math.sign(TURNS[event.key][0]) : 0;
    row = Math.max(0, Math.min(rows.length - 1, row + (last ? Math.sign(TURNS[event.key][1]) : 0)));
    place = Math.max(0, Math.min(rows[row].length - 1, place));
    last?.classList.remove("held");
    rows[row][place].classList.add("held");
    box.closest(".panel").querySelector("output").textContent = rows[row][place].title;
  });

  // What is pointed at or tapped says its name and number below the picture.
  document.addEventListener("pointerover", (event) => {
    const pointed = event.target.closest?.(".panel :is(i[title], g, rect, circle)");
    const said = pointed && (pointed.getAttribute("title") ?? pointed.querySelector(":scope > title")?.textContent);
    const line = said && pointed.closest(".panel").querySelector("output");
    if (line) line.textContent = said;
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('.panels a[href^="#"]');
    if (!link) return;
    event.preventDefault(); // or Gradio takes it for another page
    const code = link.closest(".panels").querySelector(link.getAttribute("href")); // a notebook has it in other cells, too
    if (!code) return;
    code.open = true;
    code.querySelector("summary").focus();
    code.scrollIntoView({ block: "start" });
  });

  function enlarge(map, large) {
    map.setAttribute("aria-expanded", String(large));
    const picture = map.querySelector("svg");
    picture.setAttribute("viewBox", large ? picture.dataset.large : picture.dataset.small);
  }
  document.addEventListener("click", (event) => {
    const map = event.target.closest?.(".small-map");
    if (map) enlarge(map, map.getAttribute("aria-expanded") !== "true");
  });
  document.addEventListener("keydown", (event) => {
    const map = event.key === "Escape" && event.target.closest?.('.small-map[aria-expanded="true"]');
    if (map) enlarge(map, false);
  });
})();
