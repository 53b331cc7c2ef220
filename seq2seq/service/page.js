"use strict";
const form = document.querySelector("form");
const output = document.querySelector("output");
const direction = form.elements.direction;

fetch("languages").then((answer) => answer.json()).then((languages) => {
  const names = Object.fromEntries(languages.map((one) => [one.code, one.name]));
  for (const one of languages) {
    for (const target of one.targets.filter((code) => code !== one.code)) {
      direction.add(new Option(`${one.name} to ${names[target]}`, `${one.code} ${target}`));
    }
  }
});

fetch("frontend/settings").then((answer) => answer.json()).then((settings) => {
  form.elements.key.parentElement.hidden = !settings.keyRequired;
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const [source, target] = direction.value.split(" ");
  const asked = { q: form.elements.q.value, source, target };
  if (form.elements.key.value) asked.api_key = form.elements.key.value;
  const body = JSON.stringify(asked);
  output.textContent = "…";
  try {
    const answer = await fetch("translate", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    const found = await answer.json();
    output.textContent = answer.ok ? found.translatedText : found.error;
  } catch {
    output.textContent = "The service does not answer.";
  }
});
