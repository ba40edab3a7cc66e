// Without script the page is whole; with it, a step is picked in the diagram, in the table, or by the arrow keys.
for (const section of document.querySelectorAll("section")) {
  const table = section.querySelector("table.state");
  const steps = section.querySelectorAll("svg .step");
  let at = -1;
  const pick = (n) => {
    at = n;
    for (const e of section.querySelectorAll(".at")) e.classList.remove("at");
    for (const e of section.querySelectorAll(`[data-step="${n}"]`)) e.classList.add("at");
    table?.querySelector(`thead [data-step="${n}"]`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const last = table ? table.querySelectorAll("thead [data-step]").length - 1 : 0;
  for (const e of [...steps, ...section.querySelectorAll("thead [data-step]")]) {
    if (e.classList.contains("step")) e.setAttribute("tabindex", "0");
    e.addEventListener("click", () => pick(Number(e.dataset.step)));
    e.addEventListener("focus", () => pick(Number(e.dataset.step)));
  }
  section.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!move || at < 0 || event.target.tagName === "INPUT") return;
    event.preventDefault();
    pick(Math.min(last, Math.max(0, at + move)));
  });
  const only = section.querySelector(".only-changed");
  only?.addEventListener("change", () => table.classList.toggle("only", only.checked));
  const copy = section.querySelector(".again button");
  copy?.addEventListener("click", async () => {
    await navigator.clipboard.writeText(section.querySelector(".again code").textContent);
    copy.textContent = "copied";
  });
}
