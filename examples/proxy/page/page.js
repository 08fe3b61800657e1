"use strict";

// Everything that a server sent becomes a text node, never markup.
const $ = (id) => document.getElementById(id);
let sources = [];
let turn = 0;
let asking = null;

$("ask").addEventListener("submit", async (submitted) => {
  submitted.preventDefault();
  const current = ++turn;
  asking?.abort();
  asking = new AbortController();
  // Closing the connections frees the choices of the question before.
  for (const source of sources) source.close();
  sources = [];
  $("panes").replaceChildren();
  $("status").textContent = "asking…";
  try {
    const response = await fetch("completions", {
      method: "POST",
      headers: { "content-type": "application/json" },
      signal: asking.signal,
      body: JSON.stringify({ question: $("question").value, choices: Number($("count").value) }),
    });
    const answer = await response.json();
    if (current !== turn) return; // asked again in the meantime
    if (!response.ok) throw new Error(answer.error ?? `status ${response.status}`);
    $("status").textContent = "";
    for (let index = 0; index < answer.choices; index++) watch(answer.id, index);
  } catch (error) {
    if (current === turn) $("status").textContent = error.message;
  }
});

/** Shows one choice in a pane of its own. */
function watch(id, index) {
  const pane = $("pane").content.cloneNode(true).firstElementChild;
  const part = (name) => pane.querySelector(name);
  const show = (state, end = "") => {
    part(".state").textContent = state;
    pane.dataset.end = end;
  };
  part("h2").textContent = `choice ${index}`;
  show("waiting…");
  $("panes").append(pane);

  const source = new EventSource(`completions/${id}/choices/${index}`);
  sources.push(source);
  const close = (state, end) => {
    source.close();
    part(".stop").hidden = true;
    show(state, end);
  };

  // After a reconnect the server continues behind the last event. The check is for proxies that drop the header.
  let last = -1;
  const on = (type, apply) => source.addEventListener(type, (event) => {
    const number = event.lastEventId === "" ? Infinity : Number(event.lastEventId);
    if (number <= last && type !== "end") return; // an end without an id repeats the id before it
    if (number !== Infinity) last = number;
    apply(JSON.parse(event.data));
  });

  const calls = new Map();
  let reason = "";
  on("content.delta", ({ delta }) => part(".text").append(delta));
  on("refusal.delta", ({ delta }) => part(".text").append(delta));
  on("reasoning.delta", ({ delta }) => {
    part(".reasoning").hidden = false;
    part(".reasoning").append(delta);
  });
  on("tool_call.start", ({ call, name }) => {
    const line = document.createElement("pre");
    line.append(`${name} `);
    calls.set(call, line);
    part(".calls").append(line);
  });
  on("tool_call.arguments.delta", ({ call, delta }) => calls.get(call)?.append(delta));
  on("finish", ({ finish_reason }) => { reason = finish_reason; });
  on("end", ({ end, message }) => {
    const complete = end === "finished" || end === "done_without_finish";
    if (complete) close(reason || "no reason given", reason === "length" ? "length" : "finished");
    else close(message ?? end, "error");
  });

  source.onopen = () => show("writing…");
  source.onerror = () => {
    // The browser reconnects by itself, unless the server refused the choice.
    if (source.readyState === EventSource.CLOSED) close("the connection was lost", "error");
    else show("reconnecting…");
  };
  part(".stop").addEventListener("click", () => close("stopped", "gone"));
}
