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
  }

  // Lanes: as on the server, drawn again when messages are added.
  const LANES = 6, COLOURS = 8, SHAPES = "●■▲◆★✚▼○□△◇☆▽", DRAWN = 300;

  function drawLanes(flow) {
    const rows = all(".row", flow).slice(-DRAWN);
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
    const width = Math.max(0, ...[...laneOf.values()].map((lane) => lane + 1));
    const going = new Array(width).fill(null);
    rows.forEach((row, place) => {
      const own = threads[place];
      if (laneOf.has(own)) going[laneOf.get(own)] = own;
      const cells = going.map((thread) => {
        const cell = document.createElement("span");
        if (thread === null) cell.className = "lane none";
        else {
          const [first, last] = spans.get(thread);
          const part = thread !== own ? "pass" : first === last ? "only" : place === first ? "first" : place === last ? "last" : "middle";
          const width = part === "middle" || part === "last" ? ` w${row.dataset.width}` : "";
          cell.className = `lane ${part} c${thread % COLOURS}${width}`;
          if (part !== "pass") {
            const shape = document.createElement("b");
            shape.textContent = SHAPES[thread % SHAPES.length];
            cell.append(shape);
          }
        }
        return cell;
      });
      const lanes = find(".lanes", row);
      const told = (some) => some.map((cell) => cell.className + cell.textContent).join();
      if (told([...lanes.children]) !== told(cells)) lanes.replaceChildren(...cells);
      going.forEach((thread, lane) => { if (thread !== null && spans.get(thread)[1] <= place) going[lane] = null; });
    });
    flow.className = `flow l${Math.max(width, Number(/ l(\d)/.exec(flow.className)?.[1] ?? 0))}`;
  }

  // New messages: added below what is read, which does not move.
  const MOST_ROWS = 800, KEPT_ROWS = 500;

  function follow(flow) {
    const scroll = find("#scroll"), button = find("#arrived");
    const most = Math.max(MOST_ROWS, 2 * all(".row", flow).length);
    let last = Number(flow.dataset.last), newest = last, unread = 0, busy = false, source = null;
    const atEnd = () => scroll.scrollTop > -24;

    function show() {
      button.hidden = !unread;
      button.textContent = unread ? `↓ ${button.dataset.one.replace("#", unread)}` : "";
    }
    function forgetOldest() {
      const rows = all(".row", flow);
      if (rows.length <= most || !atEnd()) return;
      const first = rows[rows.length - KEPT_ROWS];
      while (flow.firstElementChild !== first) flow.firstElementChild.remove();
      const older = find("#older");
      if (older) older.href = `${flow.dataset.older}&before=${first.id.slice(1)}`;
    }
    async function pull() {
      if (busy) return;
      busy = true;
      try {
        while (newest > last) {
          const answer = await fetch(`${flow.dataset.since}&after=${last}`, asScript);
          if (!answer.ok || answer.redirected) break;
          const added = [...find("ol", parsed(`<ol>${await answer.text()}</ol>`)).children];
          const items = added.filter((item) => !item.id || !document.getElementById(item.id)), rows = items.filter((item) => item.classList.contains("row"));
          if (!added.length) break;
          last = Number(added.findLast((item) => item.classList.contains("row"))?.id.slice(1) ?? newest);
          const end = atEnd(), before = scroll.scrollHeight;
          flow.append(...items);
          drawLanes(flow);
          if (end && document.visibilityState === "visible") scroll.scrollTop = 0;
          else {
            if (!end) scroll.scrollTop -= scroll.scrollHeight - before;
            unread += rows.length;
          }
          show();
          forgetOldest();
        }
      } finally { busy = false; }
    }
    function listen() {
      const open = document.visibilityState === "visible";
      if (open && !source) {
        source = new EventSource(flow.dataset.live.replace(/after=\d+/, `after=${last}`));
        source.addEventListener("news", (event) => { newest = Number(event.data); pull(); });
      } else if (!open && source) { source.close(); source = null; }
    }
    const toEnd = () => { scroll.scrollTop = 0; unread = 0; show(); };
    button.addEventListener("click", toEnd);
    scroll.addEventListener("scroll", () => { if (unread && atEnd()) toEnd(); });
    document.addEventListener("visibilitychange", listen);
    addEventListener("pagehide", () => source?.close());
    listen();
  }

  // Beside the room: the context of a message, where there is width for it.
  const beside = find("#beside-room");

  async function inspect(link) {
    const answer = await fetch(link.href, asScript);
    if (!answer.ok || answer.redirected) { location.assign(link.href); return; }
    showBeside(await answer.text());
  }
  function showBeside(text) {
    const found = find("#inspector", parsed(text));
    const close = document.createElement("button");
    close.className = "quiet";
    close.textContent = beside.dataset.close;
    close.addEventListener("click", shut);
    beside.replaceChildren(close, found);
    beside.hidden = false;
    beside.parentElement.classList.add("inspecting");
  }
  // A corrected link: threads and quotes follow on the page, which does not move.
  async function correct(form, button) {
    const body = new URLSearchParams(new FormData(form, button));
    const answer = await fetch(form.action, { ...asScript, method: "POST", body });
    if (!answer.ok) { location.reload(); return; }
    showBeside(await answer.text());
    const fresh = parsed(await (await fetch(location.href, asScript)).text());
    for (const part of ["#flow", "#rail"]) {
      const mine = find(part), theirs = find(part, fresh);
      if (mine && theirs) mine.replaceChildren(...theirs.children);
    }
    if (find("#flow")) drawLanes(find("#flow"));
    find("button", beside)?.focus();
  }
  function shut() {
    if (!beside || beside.hidden) return;
    beside.hidden = true;
    beside.replaceChildren();
    beside.parentElement.classList.remove("inspecting");
  }
  if (beside) document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-beside]");
    if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || !matchMedia("(min-width: 60rem)").matches) return;
    event.preventDefault();
    inspect(link);
  });
  beside?.addEventListener("submit", (event) => {
    event.preventDefault();
    correct(event.target, event.submitter);
  });

  // Keys.
  const present = () => document.activeElement?.closest?.(".row");

  function move(step) {
    const here = present();
    let next = here ? neighbour(here, step) : find("#flow")?.lastElementChild;
    while (next && !next.classList.contains("row")) next = neighbour(next, step);
    if (next) { find("article", next).focus({ preventScroll: true }); next.scrollIntoView({ block: "nearest" }); }
  }
  const neighbour = (row, step) => step > 0 ? row.nextElementSibling : row.previousElementSibling;
  function toFind() {
    const shown = all("input[type=search]").find((one) => one.offsetParent !== null);
    if (shown) { shown.focus(); shown.select(); } else location.assign("/console/search");
  }
  const KEYS = {
    "/": toFind,
    j: () => move(1),
    k: () => move(-1),
    t: () => find("a.thread", present() ?? undefined)?.click(),
    c: () => find("a.context", present() ?? undefined)?.click(),
    "?": () => find("#keys")?.showModal(),
    Escape: shut,
    End: () => { const scroll = find("#scroll"); if (scroll) scroll.scrollTop = 0; },
  };
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); toFind(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.matches?.("input, textarea, select") || find("dialog[open]")) return;
    const does = Object.hasOwn(KEYS, event.key) ? KEYS[event.key] : null;
    if (!does) return;
    if (event.key !== "Escape") event.preventDefault();
    does();
  });

  tellZone();
  const flow = find("#flow[data-live]");
  if (flow) follow(flow);
})();
