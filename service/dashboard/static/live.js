// Keeps a part of a page fresh: asks a small JSON endpoint every two seconds and, when its mark has moved, swaps the
// part for the one that the server renders. Without this module the page has a refresh link. It rests while hidden.
const EVERY_MS = 2000;
const part = document.querySelector("[data-live]");

if (part) {
  let mark = part.dataset.mark;
  let timer = 0;
  let failures = 0;
  let ended = false;

  const schedule = () => {
    clearTimeout(timer);
    timer = document.hidden || ended ? 0 : setTimeout(look, Math.min(EVERY_MS * 2 ** failures, 30000));
  };

  const say = (text) => {
    const state = document.querySelector("[data-live-state]");
    if (state) state.textContent = text;
  };

  const swap = async () => {
    const answer = await fetch(part.dataset.part, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = [...part.querySelectorAll("details")].map((one) => one.open);
    const summary = [...part.querySelectorAll("summary")].indexOf(document.activeElement);
    const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.replaceChildren(...fresh.body.childNodes);
    part.querySelectorAll("details").forEach((one, index) => { one.open = open[index] ?? false; });
    if (summary >= 0) part.querySelectorAll("summary")[summary]?.focus({ preventScroll: true });
    else if (focused) part.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };

  const look = async () => {
    try {
      const answer = await fetch(part.dataset.live, { headers: { Accept: "application/json" } });
      if (answer.redirected || answer.status === 401) { say("signed out: load the page again"); return; }
      if (!answer.ok) throw new Error(String(answer.status));
      const found = await answer.json();
      failures = 0;
      if (found.mark !== mark && !part.matches(":has(details[open] :focus:not(summary))")) {
        await swap();
        mark = found.mark;
      }
      say(found.live ? "live" : "ended");
      ended = !found.live;
    } catch {
      failures = Math.min(failures + 1, 4);
      say("no answer, trying again");
    }
    schedule();
  };

  document.addEventListener("visibilitychange", schedule);
  addEventListener("pagehide", () => clearTimeout(timer));
  addEventListener("pageshow", schedule);
  say("live");
  schedule();
}
