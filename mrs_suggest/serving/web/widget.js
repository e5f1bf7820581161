// Chips with suggestions of `mrs serve`, for any page:
//
//   <script src="https://SERVER/widget.js"></script>
//   <mrs-chips input="#message" language="en" session="4711"></mrs-chips>
//
// const chips = document.querySelector("mrs-chips");
// chips.suggest([{ from: "them", text: "Lunch at noon?" }]);  // whenever a message arrives; shows up to three chips
// chips.sent(input.value);                                    // when the person sends a text; empties the chips
//
// A chip puts its reply into the input, where it can be edited, and fires `mrs-choose` with { reply, answer }. If the
// server keeps clicks, `sent` tells it which chip was sent, and how many characters were typed; never the text.
// Attributes: `src` (the server; default: where this script is from), `k`, `language`, `session`, `model`. Other servers
// need `--cors`; a key does not belong in a page, so let your own server pass requests on. Style: ::part(chip).
(() => {
  const origin = document.currentScript ? new URL(document.currentScript.src).origin : location.origin;
  const STYLE = `
    :host { display: block; }
    div { display: flex; flex-wrap: wrap; justify-content: flex-end; gap: .5rem; padding: .25rem .5rem; }
    button { max-width: 100%; min-height: 2.75rem; padding: .25rem .9rem; border: 1px solid #8aa; border-radius: 1.4rem;
      background: Canvas; color: CanvasText; font: inherit; text-align: start; overflow-wrap: anywhere; cursor: pointer; }
    button:hover, button:focus-visible { border-color: #06c; outline: 2px solid #06c; outline-offset: -1px; }`;

  class Chips extends HTMLElement {
    constructor() {
      super();
      const root = this.attachShadow({ mode: "open" });
      const style = document.createElement("style");
      style.textContent = STYLE;
      this.row = document.createElement("div");
      this.row.setAttribute("role", "group");
      this.row.setAttribute("aria-label", this.getAttribute("aria-label") || "Suggested replies");
      root.append(style, this.row);
      this.answer = null;
      this.typed = 0;
      this.onInput = (event) => {
        if (event.data) this.typed += [...event.data].length;
      };
    }

    connectedCallback() {
      const found = this.input;
      if (found) found.addEventListener("input", this.onInput);
    }

    disconnectedCallback() {
      const found = this.input;
      if (found) found.removeEventListener("input", this.onInput);
    }

    get input() {
      const selector = this.getAttribute("input");
      return selector ? document.querySelector(selector) : null;
    }

    get server() {
      return (this.getAttribute("src") || origin).replace(/\/$/, "");
    }

    // Ask for suggestions for a conversation, oldest turn first, and show them; resolves to the answer, or to null if
    // there is none: then there are no chips, and the person types. `refusal` has the server's { code, message }, if it
    // answered with an error.
    async suggest(turns) {
      this.clear();
      const asking = (this.asking = new AbortController());
      const asked = { conversations: [turns.slice(-100)], k: Number(this.getAttribute("k") || 3) };
      for (const name of ["language", "session", "model"]) {
        if (this.hasAttribute(name)) asked[name] = this.getAttribute(name);
      }
      try {
        const response = await fetch(`${this.server}/v1/suggest`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify(asked),
          signal: asking.signal,
        });
        const content = await response.json();
        if (asking !== this.asking) return null; // a newer message arrived meanwhile
        if (!response.ok) {
          this.refusal = content.error;
          return null;
        }
        const answer = content.answers[0];
        this.answer = answer;
        answer.suggestions.forEach((one, place) => this.show(one.reply, place));
        return answer;
      } catch {
        return null;
      }
    }

    show(reply, place) {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.setAttribute("part", "chip");
      chip.textContent = chip.title = reply;
      chip.addEventListener("click", () => this.choose(reply, place));
      this.row.append(chip);
    }

    choose(reply, place) {
      this.chosen = { reply, place };
      this.typed = 0;
      const input = this.input;
      if (input) {
        input.value = reply;
        input.focus();
      }
      this.dispatchEvent(new CustomEvent("mrs-choose", { bubbles: true, detail: { reply, answer: this.answer } }));
    }

    // The person has sent a text.
    sent(text) {
      const { answer, chosen, typed } = this;
      this.clear();
      if (!answer || !answer.id) return;
      const kept = chosen && (typed === 0 || text.includes(chosen.reply) || typed < [...text].length);
      const told = { id: answer.id, chosen: kept ? chosen.place + 1 : null, edited: Boolean(kept && text !== chosen.reply), typed };
      told.shown = answer.suggestions.map((_, place) => place + 1);
      fetch(`${this.server}/v1/feedback`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(told),
        keepalive: true,
      }).catch(() => {});
    }

    clear() {
      if (this.asking) this.asking.abort();
      this.asking = this.answer = this.chosen = this.refusal = null;
      this.typed = 0;
      this.row.replaceChildren();
    }
  }
  customElements.define("mrs-chips", Chips);
})();
