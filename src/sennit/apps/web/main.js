// Starts the page: sign-in, navigation, theme, and the view that the address names.

import { ApiError, get, once, post, session, storage, whenReached, whenUnauthorized } from "./api.js";
import { announce, fill, h, showDialog, toast } from "./dom.js";
import { keepAddress, readAddress, visit } from "./address.js";
import * as memory from "./memory.js";
import * as prompt from "./prompt.js";
import * as search from "./search.js";
import * as state from "./state.js";
import * as tune from "./tune.js";

const VIEWS = { search, tune, prompt, memory, state };
const THEME = "sennit.theme";
const THEMES = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };

const settings = storage("localStorage");
const top = document.getElementById("top");
const main = document.getElementById("main");
let caller = null;
let leave = null;

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  settings.setItem(THEME, theme);
  window.dispatchEvent(new Event("themechange"));
}

function themeButton() {
  const button = h("button.plain.icon", { type: "button" });
  const show = () => {
    const theme = document.documentElement.dataset.theme;
    fill(button, h("span", { "aria-hidden": "true" }, { auto: "◐", light: "○", dark: "●" }[theme]));
    button.setAttribute("aria-label", THEMES[theme]);
    button.title = THEMES[theme];
  };
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
    applyTheme(next);
    show();
    announce(THEMES[next]);
  });
  show();
  return button;
}

function describeCaller() {
  if (caller.everything) return "sees everything";
  const scopes = caller.scopes.length ? `, ${caller.scopes.join(", ")}` : "";
  return `${caller.clearance || "lowest level"}${scopes}`;
}

function showTop() {
  const { view } = readAddress();
  fill(
    top,
    h("a.brand", { href: "#/search" }, h("img", { src: "/web/mark.svg", alt: "", width: 22, height: 22 }), "sennit"),
    caller &&
      h(
        "nav",
        { "aria-label": "Views" },
        Object.entries(VIEWS).map(([name, { title }]) =>
          h("a", { href: `#/${name}`, "aria-current": name === view ? "page" : undefined }, title),
        ),
        h("a", { href: "/docs" }, "API"),
      ),
    h(
      "div.end",
      caller && callerButton(),
      themeButton(),
    ),
  );
}

function callerButton() {
  const name = caller.acting ? session.acting?.token ?? "another caller" : caller.token || "no token needed";
  return h(
    caller.acting ? "button.chip.acting" : "button.chip",
    { type: "button", onclick: once(showCaller), "aria-label": `Caller: ${name}, ${describeCaller()}` },
    caller.acting ? `as ${name}` : name,
  );
}

async function showCaller() {
  const own = await get("/v1/caller", { asSelf: true });
  const act = (acting) => {
    session.acting = acting;
    location.reload();
  };
  const entries = own.callers.map((other) =>
    h(
      "li",
      h(
        "button.row",
        { type: "button", onclick: () => act({ token: other.token }) },
        h("strong", other.token),
        h("span.muted", other.everything ? "sees everything" : [other.clearance || "lowest level", ...other.scopes].join(", ")),
      ),
    ),
  );
  showDialog(
    "Caller",
    h("p", `Signed in as ${own.token || "the default caller"}, who ${own.everything ? "sees everything" : "sees what the token allows"} and ${own.write ? "may write" : "may not write"}.`),
    caller.acting && h("p", h("button.primary", { type: "button", onclick: () => act(null) }, "Stop seeing as another caller")),
    own.may_act
      ? [h("h3", "See as"), h("p.muted", "Every view then shows what that caller sees. Writing is off."), h("ul.rows", entries), otherCaller(own, act)]
      : h("p.muted", "Only a token that sees everything of its tenant can see as another caller."),
    own.token && h("p", h("button.plain", { type: "button", onclick: signOut }, "Sign out of this tab")),
  );
}

function otherCaller(own, act) {
  const level = h("select", own.levels.map((name) => h("option", { value: name }, name)));
  const scopes = h("input", { placeholder: "scopes, comma-separated" });
  return h(
    "form.inline",
    {
      onsubmit: (event) => {
        event.preventDefault();
        const names = scopes.value.split(",").map((name) => name.trim()).filter(Boolean);
        act({ clearance: level.value, scopes: names });
      },
    },
    h("label.field", h("span.label", "Any caller with the clearance"), level),
    h("label.field", h("span.label", "and the scopes"), scopes),
    h("button.primary", "See as this caller"),
  );
}

function signOut() {
  session.token = "";
  session.acting = null;
  location.reload();
}

function showSignIn(message = "") {
  caller = null;
  leave?.();
  leave = null;
  showTop();
  const token = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const problem = h("p.problem", { role: "alert" }, message);
  fill(
    main,
    h(
      "form.card.sign-in",
      {
        onsubmit: (event) => {
          event.preventDefault();
          signIn(token, problem);
        },
      },
      h("h1", "Look into search"),
      h("p", "A token decides what you see here, as everywhere else. It stays in this tab."),
      h("label.field", h("span.label", "Token"), token),
      problem,
      h("button.primary", "Sign in"),
      h("p.muted", "No token? Run ", h("code", "sennit tokens add NAME"), ", or ", h("code", "sennit open"), " on the machine that has the database."),
    ),
  );
  document.title = "Sign in · sennit";
  token.focus();
}

const signIn = once(async (token, problem) => {
  const value = token.value.trim();
  try {
    await get("/v1/caller", { token: value, asSelf: true });
    session.token = value;
    await start();
  } catch (error) {
    problem.textContent = error.status === 401 ? "The service does not know this token." : error.message;
    token.focus();
  }
});

async function show({ focus = "" } = {}) {
  if (!caller) return;
  const { view, parameters } = readAddress();
  const name = Object.hasOwn(VIEWS, view) ? view : "search";
  showTop();
  document.title = `${VIEWS[name].title} · sennit`;
  leave?.();
  leave = null;
  // A place of its own: a view that is still loading when the next one is chosen fills what nobody sees.
  const place = h("div.view");
  fill(main, place);
  // Before the view loads: what a person does while it loads is theirs.
  if (focus) main.focus({ preventScroll: true });
  const keep = keepAddress(name);
  const remember = (values) => place.isConnected && keep(values);
  try {
    const stop = (await VIEWS[name].show(place, parameters, { caller, remember })) ?? null;
    if (place.isConnected) leave = stop;
    else stop?.();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 401) fill(place, problemCard(error, () => show({ focus: "main" })));
  }
  if (focus === "box" && document.activeElement === main) searchBox()?.focus();
}

function problemCard(error, again) {
  return h("div.problem.card", { role: "alert" }, h("p", error.message), h("p", h("button", { type: "button", onclick: again }, "Try again")));
}

async function start() {
  try {
    caller = await get("/v1/caller");
  } catch (error) {
    const isRefused = error.status >= 400 && error.status < 500;
    if (session.acting && isRefused && error.status !== 401) {
      session.acting = null;
      return start();
    }
    if (error.status === 401) return showSignIn(session.token ? "The token is no longer valid." : "");
    // The token may be good: it is not asked for again.
    showTop();
    fill(main, problemCard(error, start));
    return undefined;
  }
  return show();
}

/** Exchange the one-time code in the address, and remove it from the history before anything else happens. */
async function signInByCode() {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (!code) return "";
  history.replaceState(null, "", "/");
  try {
    const { token } = await post("/v1/sign-in", undefined, { token: code });
    session.token = token;
    return "";
  } catch (error) {
    return error.status === 401 ? "The address was used before, or is too old. Run sennit open again." : error.message;
  }
}

const RETRY_MILLISECONDS = 2000;
let offline = null;

/** Say that the service does not answer, until it does again. */
function showReached(isReached) {
  if (isReached === (offline === null)) return;
  if (isReached) {
    clearInterval(offline.timer);
    offline.banner.remove();
    offline = null;
    announce("The service answers again.");
    return;
  }
  const banner = h("p.offline", { role: "alert" }, "The service does not answer. What you see is what it said last. Start it again with ", h("code", "sennit open"), " or ", h("code", "sennit serve"), "; this page tries again by itself.");
  top.after(banner);
  offline = { banner, timer: setInterval(() => get("/healthz").catch(() => {}), RETRY_MILLISECONDS) };
}

const known = settings.getItem(THEME);
applyTheme(Object.hasOwn(THEMES, known) ? known : "auto");
whenReached(showReached);
const problem = await signInByCode();
whenUnauthorized(() => caller && showSignIn("The token is no longer valid."));
let nextFocus = "main";
window.addEventListener("hashchange", () => {
  const focus = nextFocus;
  nextFocus = "main";
  show({ focus });
});
window.addEventListener("unhandledrejection", (event) => {
  if (!(event.reason instanceof ApiError)) return;
  event.preventDefault();
  toast(event.reason.message);
});
const searchBox = () => document.querySelector("input[type=search]:not([hidden])");
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, dialog, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    const box = searchBox();
    event.preventDefault();
    if (box) {
      box.focus();
      box.select();
    } else {
      nextFocus = "box";
      visit("search", {});
    }
  }
});
if (problem && !session.token) showSignIn(problem);
else await start();
