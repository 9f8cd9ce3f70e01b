"use strict";
(() => {
  const page = document.documentElement;
  const find = (selector, inside = document) => inside.querySelector(selector);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const parsed = (text) => new DOMParser().parseFromString(text, "text/html");
  const asScript = { headers: { "HX-Request": "true" } };

  // Times: the server writes them in the reader's zone once it knows it.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const two = (number) => String(number).padStart(2, "0");
  const written = (moment) =>
    `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ${two(moment.getHours())}:${two(moment.getMinutes())}`;

  function tellZone() {
    if (!zone || zone === page.dataset.zone) return;
    const known = document.cookie.includes("roomlore_zone=");
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `roomlore_zone=${encodeURIComponent(zone)}; path=/console; max-age=31536000; samesite=strict${secure}`;
    for (const told of all(".zone")) told.textContent = told.textContent.replace(page.dataset.zone, zone);
    for (const time of all("time[datetime]")) {
      const local = written(new Date(time.dateTime));
      if (/^\d\d:\d\d$/.test(time.textContent)) time.textContent = local.slice(11);
      else if (/^\d{4}-\d\d-\d\d \d\d:\d\d$/.test(time.textContent)) time.textContent = local;
      else if (/^\d{4}-\d\d-\d\d$/.test(time.textContent)) time.textContent = local.slice(0, 10);
      time.title = local;
    }
    // Times in a list to choose from can only be written by the server.
    if (!known && find("[data-zoned]") && document.cookie.includes("roomlore_zone=")) location.reload();
  }

  // Rows are in parts, so that a browser lays out only those near the screen.
  const isRow = (item) => item.id !== "";
  function step(item, by) {
    const part = item.parentElement;
    if (by > 0) return item.nextElementSibling ?? part.nextElementSibling?.firstElementChild;
    return item.previousElementSibling ?? part.previousElementSibling?.lastElementChild;
  }
  const newestItem = (flow) => flow.lastElementChild?.lastElementChild;
  function newestRows(flow, most) {
    const rows = [];
    for (let item = newestItem(flow); item && rows.length < most; item = step(item, -1)) if (isRow(item)) rows.push(item);
    return rows.reverse();
  }

  // Lanes: as on the server, drawn again when messages are added; only rows that look otherwise are touched.
  const LANES = 6, COLOURS = 8, SHAPES = "●■▲◆★✚▼○□△◇☆▽", DRAWN = 300;
  const drawnOf = new WeakMap();

  function drawLanes(flow) {
    const rows = newestRows(flow, DRAWN);
    const threads = rows.map((row) => Number(row.dataset.thread));
    const spans = new Map();
    threads.forEach((thread, place) => spans.set(thread, [spans.get(thread)?.[0] ?? place, place]));
    const freeFrom = new Array(LANES).fill(0), laneOf = new Map();
    for (const [thread, [first, last]] of spans) {
      const lane = freeFrom.findIndex((free) => free <= first);
      if (lane < 0) continue;
      laneOf.set(thread, lane);
      freeFrom[lane] = last + 1;
    }
    // A line has one thickness from a message to the next one of its thread.
    const thick = rows.map((row) => Number(row.dataset.width)), below = new Array(rows.length).fill(0), after = new Map();
    for (let place = rows.length - 1; place >= 0; place--) {
      below[place] = after.get(threads[place]) ?? 0;
      after.set(threads[place], thick[place]);
    }
    const width = Math.max(0, ...[...laneOf.values()].map((lane) => lane + 1));
    const going = new Array(width).fill(null), under = new Map();
    rows.forEach((row, place) => {
      const own = threads[place];
      under.set(own, below[place]);
      if (laneOf.has(own)) going[laneOf.get(own)] = own;
      const cells = going.map((thread) => {
        if (thread === null) return ["lane none", ""];
        const [first, last] = spans.get(thread);
        const part = thread !== own ? "pass" : first === last ? "only" : place === first ? "first" : place === last ? "last" : "middle";
        const over = part === "middle" || part === "last" ? ` a${thick[place]}` : "";
        const beneath = under.get(thread) ? ` b${under.get(thread)}` : "";
        return [`lane ${part} c${thread % COLOURS}${over}${beneath}`, part === "pass" ? "" : SHAPES[thread % SHAPES.length]];
      });
      const lanes = row.firstElementChild, drawn = cells.join();
      const before = drawnOf.get(row) ?? [...lanes.children].map((cell) => [cell.className, cell.textContent]).join();
      if (before !== drawn) lanes.replaceChildren(...cells.map(drawCell));
      drawnOf.set(row, drawn);
      going.forEach((thread, lane) => { if (thread !== null && spans.get(thread)[1] <= place) going[lane] = null; });
    });
    const wide = Math.max(width, Number(/ l(\d)/.exec(flow.className)?.[1] ?? 0));
    if (!flow.classList.contains(`l${wide}`)) flow.className = `flow l${wide}`;
  }
  function drawCell([name, shape]) {
    const cell = document.createElement("span");
    cell.className = name;
    if (shape) cell.append(Object.assign(document.createElement("b"), { textContent: shape }));
    return cell;
  }

  // New messages: the server sends them as a piece of the page. They are added below what is read, which does not move.
  const MOST_ROWS = 800, SPARE_ROWS = 300, THREADS_MS = 2_000;
  let alone = null;

  function follow(flow) {
    const scroll = find("#scroll"), button = find("#arrived"), partRows = Number(flow.dataset.part);
    const most = Math.max(MOST_ROWS, flow.children.length * partRows + SPARE_ROWS);
    let last = Number(flow.dataset.last), unread = 0, behind = false, atEnd = scroll.scrollTop > -24, source = null;
    const rowCount = () => (flow.children.length - 1) * partRows;

    function show() {
      button.hidden = !unread;
      if (unread) button.textContent = `↓ ${button.dataset.one.replace("#", unread)}`;
    }
    function append(items) {
      for (const item of items) {
        let part = flow.lastElementChild;
        if (part.children.length >= partRows && isRow(item)) {
          part = Object.assign(document.createElement("ol"), { className: "part" });
          flow.append(part);
        }
        part.append(item);
      }
      drawLanes(flow);
    }
    function dropFarAway() {
      while (rowCount() > most) flow.firstElementChild.remove();
      const older = find("#older"), first = [...flow.firstElementChild.children].find(isRow);
      if (older && first) older.href = `${flow.dataset.newest}&before=${first.id.slice(1)}`;
    }
    function take(event) {
      last = Number(event.lastEventId);
      const piece = document.createElement("template");
      piece.innerHTML = event.data;
      const counted = find(".count", piece.content), count = find(".room > .top .count");
      counted?.remove();
      if (counted && count) count.textContent = counted.textContent;
      const items = [...piece.content.children].filter((item) => !isRow(item) || !document.getElementById(item.id));
      const rows = items.filter(isRow);
      if (!rows.length) return;
      // Only the newest 60 of those that came at once are in it.
      const left = Number(items.find((item) => item.matches(".missed"))?.dataset.count ?? 0);
      // Somebody who reads far above for hours must not fill the tab: the newest are loaded when they are asked for.
      behind ||= !atEnd && rowCount() > most;
      if (!behind) {
        const before = atEnd ? 0 : scroll.scrollHeight;
        append(items);
        if (!atEnd) scroll.scrollTop -= scroll.scrollHeight - before;
        alone?.take(rows);
      }
      if (atEnd && document.visibilityState === "visible") dropFarAway();
      else unread += rows.length + left;
      show();
      renewThreadsSoon();
    }
    function listen() {
      const open = document.visibilityState === "visible";
      if (open && !source) {
        source = new EventSource(flow.dataset.live.replace(/after=\d+/, `after=${last}`));
        source.addEventListener("news", take);
      } else if (!open && source) { source.close(); source = null; }
    }
    const toEnd = () => {
      if (behind) { location.assign(flow.dataset.newest); return; }
      scroll.scrollTop = 0;
      unread = 0;
      show();
    };
    button.addEventListener("click", toEnd);
    scroll.addEventListener("scroll", () => { atEnd = scroll.scrollTop > -24; if (unread && atEnd) toEnd(); }, { passive: true });
    document.addEventListener("visibilitychange", listen);
    addEventListener("pagehide", () => source?.close());
    listen();
  }

  // The list of threads is read anew after new messages, at most once in this time. What is read or focused in it stays.
  const rail = find("#rail");
  let renewing = false, renewals = 0;

  async function renewThreads() {
    const number = ++renewals;
    const answer = await fetch(rail.dataset.live, asScript);
    const theirs = answer.ok && !answer.redirected && find("ul", parsed(await answer.text()));
    if (!theirs || number !== renewals) return;
    const focused = document.activeElement?.closest?.("#rail li")?.dataset.thread;
    find("ul", rail).replaceChildren(...theirs.children);
    mark(alone?.thread);
    if (focused) find(`li[data-thread="${focused}"] a`, rail)?.focus({ preventScroll: true });
  }
  function renewThreadsSoon() {
    if (renewing || !rail?.dataset.live) return;
    renewing = true;
    setTimeout(() => {
      renewing = false;
      // A link that is being pressed stays where it is.
      if (rail.matches(":active")) renewThreadsSoon();
      else renewThreads().catch(() => {});
    }, THREADS_MS);
  }

  // A thread followed alone: its loaded messages at once, over the room, which stays as it is; then what the server says.
  const room = find(".room"), pane = find("#alone"), main = find("#flow");

  function apart(part) {
    for (const one of all("[id]", part)) one.id = `t${one.id}`;
    for (const one of all("[aria-labelledby]", part)) one.setAttribute("aria-labelledby", `t${one.getAttribute("aria-labelledby")}`);
    for (const one of all('a[href^="#m"]', part)) one.hash = `t${one.hash.slice(1)}`;
    return part;
  }
  function copyOf(row) {
    const holder = document.createElement("ol");
    holder.append(row.cloneNode(true));
    const copy = apart(holder).firstElementChild;
    copy.classList.add("begins");
    return copy;
  }
  // The room is covered by classes on few elements: one on the room itself would have the browser look at every row.
  const under = all(":scope > .top, :scope > .scroll, :scope > .arrived", room ?? document.createElement("div"));
  const cover = (yes) => { for (const one of under) one.classList.toggle("under", yes); };

  async function followThread({ thread, href, from }) {
    const list = Object.assign(document.createElement("ol"), { className: "part" });
    list.append(...all(`.row[data-thread="${thread}"]`, main).map(copyOf));
    const head = document.createElement("div"), scroll = document.createElement("div");
    const title = Object.assign(document.createElement("h1"), { textContent: find(`#rail [data-thread="${thread}"] .title`)?.textContent ?? pane.ariaLabel });
    const back = Object.assign(document.createElement("a"), { href: pane.dataset.all, textContent: find(".room > .top h1").textContent });
    const trail = Object.assign(document.createElement("p"), { className: "trail" });
    trail.append(back);
    head.className = "top";
    head.append(trail, title);
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    const said = Object.assign(document.createElement("div"), { className: "said-all" });
    const flow = Object.assign(document.createElement("div"), { className: "flow l1" });
    flow.append(list);
    said.append(flow);
    scroll.append(said);
    pane.replaceChildren(head, scroll);
    pane.hidden = false;
    cover(true);
    mark(thread);
    // The page of the thread may have a message before the stream of new ones brings it.
    const isNew = (row) => row.dataset.thread === thread && !document.getElementById(`t${row.id}`);
    const mine = alone = { thread, from, take };
    function take(rows) {
      newestItem(flow)?.parentElement.append(...rows.filter(isNew).map(copyOf));
      recount();
    }
    function recount() {
      const count = find(".count", head), shown = all(".row", flow).length;
      if (count && shown > 1) count.textContent = pane.dataset.one.replace("#", shown);
    }
    (find(`#t${CSS.escape(from ?? "")} article`, pane) ?? pane).focus({ preventScroll: true });
    const answer = await fetch(href, asScript);
    if (!answer.ok || answer.redirected) return;
    const fresh = parsed(await answer.text());
    const theirs = find("#flow", fresh), top = find(".top", fresh);
    if (alone !== mine || !theirs || !top) return;
    const here = document.activeElement?.closest?.("#alone .row")?.id;
    renew(flow, apart(theirs));
    head.replaceChildren(...top.children);
    recount();
    if (here) find(`#${here} article`, pane)?.focus({ preventScroll: true });
  }
  // Messages may have come since the server wrote the page: they stay below it.
  function renew(flow, theirs) {
    const arrival = (row) => Number(/\d+$/.exec(row.id));
    const newest = Math.max(0, ...all(".row", theirs).map(arrival));
    const late = all(".row", flow).filter((row) => arrival(row) > newest);
    flow.replaceChildren(...theirs.children);
    flow.lastElementChild?.append(...late);
  }
  function mark(thread) {
    for (const link of all("#rail li a")) {
      if (link.parentElement.dataset.thread === thread) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  function leaveThread() {
    if (!alone) return;
    const from = alone.from && document.getElementById(alone.from);
    alone = null;
    pane.hidden = true;
    pane.replaceChildren();
    cover(false);
    mark(null);
    if (from) find("article", from)?.focus({ preventScroll: true });
  }
  // A new address is looked up in every link of the page, so it waits until the thread is on the screen.
  let told = null;
  function tellHistory() {
    told?.();
    told = null;
  }
  function goBack() {
    tellHistory();
    history.back();
  }
  if (pane && main) {
    document.addEventListener("click", (event) => {
      const link = plainly(event, "a.thread, #rail li a");
      if (link) {
        event.preventDefault();
        const thread = link.closest("[data-thread]").dataset.thread;
        if (alone?.thread === thread) return;
        const from = link.closest(".row")?.id ?? "";
        const wanted = { thread, href: link.href, from: alone ? alone.from : from };
        const way = alone ? "replaceState" : "pushState";
        followThread(wanted);
        told = () => history[way](wanted, "", link.href);
        requestAnimationFrame(() => setTimeout(tellHistory));
      } else if (alone && plainly(event, "#alone .trail a")) { event.preventDefault(); goBack(); }
    });
    addEventListener("popstate", (event) => { if (event.state?.thread) followThread(event.state); else leaveThread(); });
  }
  function plainly(event, selector) {
    const link = event.target.closest(selector);
    return link && !event.button && !event.metaKey && !event.ctrlKey && !event.shiftKey ? link : null;
  }

  // Beside the room: the context of a message, where there is width for it.
  const beside = find("#beside-room"), opened = location.href;

  let asked = 0;

  async function inspect(link) {
    const number = ++asked;
    const waits = Object.assign(document.createElement("section"), { id: "inspector" });
    const title = Object.assign(document.createElement("h1"), { textContent: beside.dataset.title });
    const text = document.createElement("blockquote");
    text.append(...all(".byline .who, .text", link.closest("article")).map((one) => Object.assign(document.createElement("p"), { className: "text", textContent: one.textContent })));
    waits.append(title, text, Object.assign(document.createElement("progress"), { ariaLabel: beside.dataset.waits }));
    put(waits);
    const answer = await fetch(link.href, asScript);
    if (number !== asked) return;
    if (!answer.ok || answer.redirected) { location.assign(link.href); return; }
    const whole = await answer.text();
    if (number === asked && !beside.hidden) put(find("#inspector", parsed(whole)));
  }
  function put(section) {
    const close = document.createElement("button");
    close.className = "quiet";
    close.textContent = beside.dataset.close;
    close.addEventListener("click", shut);
    beside.replaceChildren(close, section);
    beside.removeAttribute("aria-busy");
    beside.hidden = false;
    inspecting(true);
  }
  function inspecting(yes) {
    room.classList.toggle("inspecting", yes);
    find("#rail").hidden = yes;
  }
  // A corrected link: threads and quotes follow on the page, which does not move.
  async function correct(form, button) {
    const body = new URLSearchParams(new FormData(form, button));
    beside.setAttribute("aria-busy", "true");
    const answer = await fetch(form.action, { ...asScript, method: "POST", body });
    if (!answer.ok) { location.reload(); return; }
    put(find("#inspector", parsed(await answer.text())));
    const fresh = parsed(await (await fetch(opened, asScript)).text());
    const flow = find("#flow", fresh), rail = find("#rail", fresh);
    if (main && flow) renew(main, flow);
    renewals++;
    if (rail) find("#rail")?.replaceChildren(...rail.children);
    renewThreadsSoon();
    if (main) drawLanes(main);
    tellHistory();
    if (alone) followThread(history.state);
    find("button", beside)?.focus();
  }
  function shut() {
    if (!beside || beside.hidden) { if (alone) goBack(); return; }
    asked++;
    beside.hidden = true;
    beside.replaceChildren();
    inspecting(false);
  }
  if (beside) document.addEventListener("click", (event) => {
    const link = plainly(event, "a[data-beside]");
    if (!link || !matchMedia("(min-width: 60rem)").matches) return;
    event.preventDefault();
    inspect(link);
  });
  beside?.addEventListener("submit", (event) => {
    event.preventDefault();
    correct(event.target, event.submitter);
  });

  // Rooms and people while somebody types in a search. Enter without a choice searches, as without the script.
  const PAUSE_MS = 150;
  function suggestIn(form) {
    const input = find("input[type=search]", form), list = find("[role=listbox]", form);
    let waiting = 0, asking = null, at = -1;
    for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-controls", list.id], ["aria-expanded", "false"], ["autocomplete", "off"]]) input.setAttribute(name, value);

    function hide() {
      clearTimeout(waiting);
      asking?.abort();
      choose(-1);
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
    }
    function choose(place) {
      at = place;
      for (const [number, option] of [...list.children].entries()) option.setAttribute("aria-selected", String(number === at));
      if (at < 0) { input.removeAttribute("aria-activedescendant"); return; }
      input.setAttribute("aria-activedescendant", list.children[at].id);
      list.children[at].scrollIntoView({ block: "nearest" });
    }
    async function ask() {
      asking?.abort();
      const mine = asking = new AbortController(), typed = input.value.trim();
      if (!typed) { hide(); return; }
      let options = [];
      try {
        const answer = await fetch(`${form.dataset.suggest}?q=${encodeURIComponent(typed)}`, { ...asScript, signal: mine.signal });
        if (answer.ok && !answer.redirected) options = all("[role=option]", parsed(await answer.text()));
      } catch { if (mine.signal.aborted) return; }
      if (mine !== asking || document.activeElement !== input) return;
      for (const [number, option] of options.entries()) option.id = `${list.id}-${number}`;
      list.replaceChildren(...options);
      choose(-1);
      list.hidden = !options.length;
      input.setAttribute("aria-expanded", String(!list.hidden));
    }
    const askSoon = () => { clearTimeout(waiting); waiting = setTimeout(ask, PAUSE_MS); };
    input.addEventListener("input", (event) => { if (!event.isComposing) askSoon(); });
    input.addEventListener("compositionend", askSoon);
    input.addEventListener("keydown", (event) => {
      if (list.hidden || event.isComposing) return;
      const count = list.children.length, by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) choose(((at + 1 + by + count + 1) % (count + 1)) - 1);
      else if (event.key === "Escape") hide();
      else if (event.key === "Enter" && at >= 0) list.children[at].click();
      else return;
      event.preventDefault();
    });
    input.addEventListener("blur", hide);
    list.addEventListener("mousedown", (event) => event.preventDefault());
    form.addEventListener("submit", hide);
  }
  for (const form of all("form[data-suggest]")) suggestIn(form);

  // Keys.
  const present = () => document.activeElement?.closest?.(".row");
  const newest = () => newestItem(find("#alone:not([hidden]) .flow") ?? main ?? document) ?? document;

  function move(by) {
    const here = present();
    let next = here ? step(here, by) : newestItem(find("#alone:not([hidden]) .flow") ?? main);
    while (next && !isRow(next)) next = step(next, by);
    if (next) { find("article", next).focus({ preventScroll: true }); next.scrollIntoView({ block: "nearest" }); }
  }
  const searches = all("input[type=search]"), keys = find("#keys");
  function toFind() {
    const shown = searches.find((one) => one.offsetParent !== null);
    if (shown) { shown.focus(); shown.select(); } else location.assign("/console/search");
  }
  const KEYS = {
    "/": toFind,
    j: () => move(1),
    k: () => move(-1),
    t: () => find("a.thread", present() ?? newest())?.click(),
    c: () => find("a.context", present() ?? newest())?.click(),
    "?": () => keys?.showModal(),
    Escape: shut,
    End: () => { const scroll = find("#alone:not([hidden]) .scroll") ?? find("#scroll"); if (scroll) scroll.scrollTop = 0; },
  };
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); toFind(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.matches?.("input, textarea, select") || keys?.open) return;
    const does = Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
    if (!does) return;
    if (event.key !== "Escape") event.preventDefault();
    does();
  });

  tellZone();
  if (main?.dataset.live) follow(main);
})();
