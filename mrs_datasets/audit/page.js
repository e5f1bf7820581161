"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const questions = data.questions, answers = data.answers, items = data.items;
  const place = Object.fromEntries(items.map((item, number) => [item.item, number]));
  const by = (id) => document.getElementById(id);
  const make = (name, text, properties = {}) => Object.assign(document.createElement(name), { textContent: text }, properties);

  // What was judged: item -> {question: answer, comment: text}. It stays in this browser under the name of the sheet.
  const store = `mrs-audit:${data.sheet}`;
  let judged = {}, changed = false, shown = 0, active = 0, filter = "", advance = true, keeps = true;

  const review = data.review, unsent = new Set(); // a page of `mrs data review` posts what was judged

  const load = () => {
    if (review) { judged = review.judged; return; }
    try {
      const kept = JSON.parse(localStorage.getItem(store) || "{}");
      ({ judged = {}, changed = false, shown = 0, filter = "", advance = true } = kept);
      localStorage.setItem("mrs-audit", "");  // fails where nothing is kept; never over the answers
    } catch { keeps = false; }
    if (!items[shown]) shown = 0;
  };
  const save = () => {
    if (review) {
      for (const id of unsent) post({ item: id, ...judged[id] });
      unsent.clear();
      return;
    }
    try { localStorage.setItem(store, JSON.stringify({ judged, changed, shown, filter, advance })); }
    catch { keeps = false; warn(); }
  };
  const post = async (content) => {
    try {
      const answer = await fetch("", { method: "POST", body: JSON.stringify(content) });
      const { said } = await answer.json();
      if (said) say(said);
    } catch { say("Not saved: `mrs data review` does not answer. Start it again, and reload its page."); }
  };
  const warn = () => keeps || say("This browser does not keep answers: download the sheet before you close the page.");
  const say = (text, done = false) => {
    by("said").textContent = text;
    by("download-now").hidden = !done;
    by("notice").hidden = !text;
  };

  // --- sheets: CSV as the project writes it (mrs_suggest/common/io/sheets.py)

  const quoted = (cell) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const csv = (rows) => rows.map((row) => row.map((cell) => quoted(String(cell))).join(",") + "\r\n").join("");
  const parse = (text, separator) => {
    const rows = [];
    let row = [], cell = "", inside = false;
    const endRow = () => { row.push(cell); rows.push(row); row = []; cell = ""; };
    for (let i = 0; i < text.length; i++) {
      const c = text[i];
      if (inside) {
        if (c !== '"') cell += c;
        else if (text[i + 1] === '"') { cell += c; i++; }
        else inside = false;
      } else if (c === '"' && cell === "") inside = true;
      else if (c === separator) { row.push(cell); cell = ""; }
      else if (c === "\r" || c === "\n") { if (c === "\r" && text[i + 1] === "\n") i++; endRow(); }
      else cell += c;
    }
    if (cell !== "" || row.length) endRow();
    return rows;
  };
  // As a cell that no spreadsheet program reads as a formula, a number or a date; reading takes the apostrophe off.
  const escaped = (text) => {
    const first = (text.match(/[^\s\p{C}]/u) || [" "])[0];
    const value = /\p{N}/u.test(text) && (text.match(/\p{L}+/gu) || []).length <= data.valueWords;
    return data.risky.includes(first) || value ? `'${text}` : text;
  };
  const restored = (cell) => (cell.startsWith("'") ? cell.slice(1) : cell);
  const sheet = () => "\ufeff" + csv([data.columns, ...items.map((item) => {
    const own = judged[item.item] || {};
    return [
      item.item, item.language, item.message, item.reply, ...questions.map((question) => own[question.name] || ""),
      escaped(own.comment || ""), data.sheet,
    ];
  })]);
  const read = (text) => {
    const body = text.replace(/^\ufeff/, "");
    for (const separator of [",", ";", "\t"]) {
      const rows = parse(body, separator);
      const header = (rows.shift() || []).map((name) => name.trim().toLowerCase());
      if (!data.columns.every((column) => header.includes(column))) continue;
      const found = {};
      for (const cells of rows.filter((row) => row.some((cell) => cell.trim()))) {
        const cell = (column) => cells[header.indexOf(column)] || "";
        if (cell("sheet").trim() !== data.sheet) throw new Error(`It is another one: “${cell("sheet")}”, not “${data.sheet}”.`);
        const item = cell("item").trim();
        if (!(item in place)) throw new Error(`It has an item ${item}, which this page does not have.`);
        const own = {};
        for (const { name } of questions) {
          const answer = cell(name).trim().toLowerCase();
          if (answer && !answers.includes(answer)) throw new Error(`Item ${item} has “${answer}” as an answer; expected ${answers.join(", ")}.`);
          if (answer) own[name] = answer;
        }
        if (cell("comment")) own.comment = restored(cell("comment"));
        if (Object.keys(own).length) found[item] = own;
      }
      return found;
    }
    throw new Error("It is not a sheet of this audit: its first row has other columns.");
  };

  // --- what is shown

  const isOpen = (item) => questions.some((question) => !(judged[item.item] || {})[question.name]);
  const listed = () => items.filter((item) => !filter || item.language === filter);
  // Control characters, and what shows text in another order than it is read, by their numbers.
  const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
  const numbered = (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`;
  const readable = (cell) => restored(cell).replace(/\r\n?/g, "\n").replace(control, numbered);

  const rows = questions.map((question, number) => {
    const row = make("div", "", { className: "question" });
    row.setAttribute("role", "group");
    const ask = make("div", "", { className: "ask" }), title = make("b", question.ask, { id: `ask-${number}` });
    if (questions.length > 1) ask.append(make("span", String(number + 1), { className: "key" }), " ");
    ask.append(title);
    if (questions.length > 1) {
      const more = make("details", "");
      more.append(make("summary", "What counts"), make("small", question.explain));
      ask.append(more);
    } else ask.append(make("small", question.explain));
    row.setAttribute("aria-labelledby", title.id);
    const choices = make("div", "", { className: "choices" });
    for (const answer of answers) {
      const button = make("button", `${answer[0].toUpperCase()}${answer.slice(1)} `, { type: "button" });
      button.dataset.answer = answer;
      button.id = `q${number}-${answer}`;
      button.setAttribute("aria-keyshortcuts", answer[0]);
      button.append(make("span", answer[0], { className: "key", ariaHidden: "true" }));
      button.addEventListener("click", () => { active = number; give(answer); });
      choices.append(button);
    }
    row.append(ask, choices);
    by("questions").append(row);
    return row;
  });

  const show = () => {
    const item = items[shown], own = judged[item.item] || {}, list = listed();
    for (const name of ["message", "reply"]) {
      by(name).textContent = readable(item[name]);
      by(name).lang = item.language;
      by(name).parentElement.classList.toggle("aside", Boolean(review) && review.sides[item.item] !== name);
      by(name).scrollTop = 0;
      if (by(name).scrollHeight > by(name).clientHeight) by(name).tabIndex = 0; // so that arrow keys can scroll it
      else by(name).removeAttribute("tabindex");
    }
    by("where").textContent = `${data.languages[item.language]}, pair ${list.indexOf(item) + 1} of ${list.length}`;
    by("comment").value = own.comment || (review ? readable(item[review.sides[item.item]]) : "");
    mark();
  };
  const mark = () => {
    const item = items[shown], own = judged[item.item] || {}, list = listed();
    rows.forEach((row, number) => {
      row.setAttribute("aria-current", String(questions.length > 1 && number === active));
      for (const button of row.querySelectorAll("button"))
        button.setAttribute("aria-pressed", String(own[questions[number].name] === button.dataset.answer));
    });
    const done = list.filter((each) => !isOpen(each)).length, all = items.every((each) => !isOpen(each));
    by("bar").max = list.length;
    by("bar").value = done;
    by("done").textContent = `${done} of ${list.length} judged`;
    by("back").disabled = list.indexOf(item) === 0;
    by("next").disabled = list.indexOf(item) === list.length - 1;
    by("rest").disabled = !isOpen(item);
    by("saved").textContent = changed ? (keeps ? "Kept in this browser, not downloaded" : "Not downloaded") : "";
    if (all && changed) say("All pairs are judged. Download the sheet and give it back.", true);
    else { say(""); warn(); }
    for (const option of by("filter").options) {
      const own = items.filter((each) => !option.value || each.language === option.value);
      const name = option.value ? data.languages[option.value] : "All";
      option.textContent = `${name} (${own.filter((each) => !isOpen(each)).length}/${own.length})`;
    }
  };
  const firstOpen = () => {
    const own = judged[items[shown].item] || {};
    const found = questions.findIndex((question) => !own[question.name]);
    return found < 0 ? 0 : found;
  };
  const go = (number) => {
    if (number !== shown) window.scrollTo(0, 0);
    shown = number;
    active = firstOpen();
    save();
    show();
  };
  const move = (step) => {
    const list = listed(), target = list[list.indexOf(items[shown]) + step];
    if (target) go(items.indexOf(target));
  };
  const onward = () => { // to the next open pair, from here on; else stay
    const list = listed(), here = list.indexOf(items[shown]);
    const target = [...list.slice(here + 1), ...list.slice(0, here)].find(isOpen);
    if (target) go(items.indexOf(target));
  };

  // --- what people do

  const put = (name, value) => {
    const id = items[shown].item, own = { ...(judged[id] || {}) };
    if (value) own[name] = value; else delete own[name];
    judged = { ...judged, [id]: own };
    changed = !review;
    unsent.add(id);
  };
  const settle = () => {
    save();
    if (advance && !isOpen(items[shown])) onward();
    mark();
  };
  const give = (answer) => {
    if (review && answer === "edit") { by("comment").focus(); return; }
    const { name } = questions[active], own = judged[items[shown].item] || {}, before = isOpen(items[shown]);
    put(name, own[name] === answer ? "" : answer);
    if (before && isOpen(items[shown])) active = firstOpen();
    if (before) settle(); else { save(); mark(); }
  };
  const rest = () => {
    if (!isOpen(items[shown])) return;
    for (const { name } of questions) if (!(judged[items[shown].item] || {})[name]) put(name, "no");
    settle();
  };
  const download = () => {
    if (review) { post({ apply: true }); return; }
    const url = URL.createObjectURL(new Blob([sheet()], { type: "text/csv;charset=utf-8" }));
    const link = make("a", "", { href: url, download: data.file });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
    changed = false;
    save();
    mark();
  };
  const open = async (file) => {
    try {
      const found = read(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer()));
      const differ = Object.keys(judged).filter((item) => {
        const [own, other] = [judged[item], found[item] || {}];
        return Object.keys(own).some((name) => own[name] !== other[name]);
      });
      const question = `Answers or comments of ${differ.length} pairs on this page differ from the sheet. Replace them by the sheet's?`;
      if (differ.length && !confirm(question)) return;
      judged = found;
      changed = false;
      const start = items.findIndex(isOpen);
      go(start < 0 ? 0 : start);
      say(`${Object.keys(found).length} judged pairs were read from ${file.name}.`);
    } catch (error) {
      const why = error instanceof TypeError ? "It is not UTF-8 text." : error.message;
      say(`${file.name} was not opened. ${why}`);
    }
  };

  const letter = (event) => {
    if (/^[a-z0-9?]$/i.test(event.key)) return event.key.toLowerCase();
    const code = /^Key([A-Z])$/.exec(event.code || ""); // a keyboard without Latin letters
    return code ? code[1].toLowerCase() : event.key;
  };
  const keys = {
    a: () => by("rest").hidden || rest(), ...Object.fromEntries(answers.map((answer) => [answer[0], () => give(answer)])),
    j: () => move(1), ArrowRight: () => move(1), k: () => move(-1), ArrowLeft: () => move(-1), o: onward,
    c: () => by("comment").focus(), "?": () => by("help").showModal(),
  };
  questions.forEach((_, number) => { keys[String(number + 1)] = () => { active = number; mark(); }; });
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.altKey || event.metaKey || event.repeat || by("help").open) return;
    if (event.target.matches("textarea, select, input")) {
      if (event.key === "Escape" || (review && event.key === "Enter")) { event.target.blur(); by("where").focus(); }
      return;
    }
    const act = keys[letter(event)];
    if (act) { event.preventDefault(); act(); }
  });
  if (review) by("comment").addEventListener("change", () => {
    put("comment", by("comment").value);
    put("decision", "edit");
    settle();
  });
  else by("comment").addEventListener("input", () => { put("comment", by("comment").value); save(); mark(); });
  by("back").addEventListener("click", () => move(-1));
  by("next").addEventListener("click", () => move(1));
  by("rest").addEventListener("click", rest);
  for (const id of ["download", "download-now"]) by(id).addEventListener("click", download);
  by("open").addEventListener("click", () => by("file").click());
  by("file").addEventListener("change", () => { const [file] = by("file").files; by("file").value = ""; if (file) open(file); });
  by("help-open").addEventListener("click", () => by("help").showModal());
  by("advance").addEventListener("change", () => { advance = by("advance").checked; save(); });
  by("filter").addEventListener("change", () => {
    filter = by("filter").value;
    const list = listed();
    go(items.indexOf(list.find(isOpen) || list[0]));
  });
  window.addEventListener("beforeunload", (event) => { if (changed) event.preventDefault(); });

  load();
  const codes = [...new Set(items.map((item) => item.language))];
  if (!codes.includes(filter)) filter = "";
  by("filter").append(...["", ...codes].map((code) => make("option", "", { value: code })));
  by("filter").value = filter;
  by("filter-label").hidden = codes.length < 2;
  by("rest").hidden = questions.length < 2;
  if (review) {
    by("open").hidden = by("help-sheet").hidden = true;
    by("help-sending").hidden = false;
    by("comment-name").textContent = "Text";
    for (const id of ["download", "download-now"]) by(id).textContent = "Apply to the folder";
  }
  by("advance").checked = advance;
  for (const question of questions) by("help-questions").append(make("dt", question.ask), make("dd", question.explain));
  const described = [
    [answers.map((answer) => answer[0]).join(" "), answers.join(", ")],
    ...(questions.length > 1 ? [[`1 to ${questions.length}`, "choose a question"]] : []),
    ...(questions.length > 1 ? [["a", "no to all questions that are open"]] : []), ["→ or j", "next pair"], ["← or k", "back"], ["o", "next open pair"],
    ["c", "comment; Esc leaves it"], ["?", "this help"],
  ];
  for (const [key, what] of described) {
    const row = make("tr", ""), first = make("td", "");
    first.append(make("span", key, { className: "key" }));
    row.append(first, make("td", what));
    by("help-keys").append(row);
  }
  active = firstOpen();
  show();
  warn();
  window.mrsAudit = { csv, parse, sheet, escaped, restored }; // for tests
})();
