// Asks again and again, never twice at once; rests while the page is not looked at.
import { at, setText } from "./dom.js";

export function every(milliseconds, ask) {
  let failures = 0;
  let timer = null;
  let asking = false;
  async function once() {
    clearTimeout(timer);
    if (asking) return;
    asking = true;
    try {
      await ask();
      failures = 0;
      say("live", "live");
    } catch (error) {
      failures += 1;
      say(failures > 1 ? "broken" : "waiting", error && error.words ? error.words : "the server does not answer");
    }
    asking = false;
    const wait = typeof milliseconds === "function" ? milliseconds() : milliseconds;
    if (!document.hidden) timer = setTimeout(once, Math.min(wait * 2 ** Math.min(failures, 4), 60000));
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) once(); });
  once();
  return once;
}

export function say(state, words) {
  at("live").dataset.state = state;
  setText(at("live-words"), words);
}

export async function getJson(address, headers) {
  const answer = await fetch(address, { headers: { Accept: "application/json", ...headers }, credentials: "same-origin" });
  if (answer.status === 304) return { same: true };
  if (answer.status === 401) { location.assign("/login"); throw { words: "the token is asked for" }; }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw { status: answer.status, words: typeof body.detail === "string" ? body.detail : `the server answered ${answer.status}` };
  return { body, tag: answer.headers.get("ETag") };
}
