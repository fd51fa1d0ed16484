// Calls of the service. The token stays in this tab (sessionStorage): never in an address, never in another tab.

/** A storage of the browser. Where it blocks that, values last as long as the page. */
export function storage(name) {
  try {
    return window[name];
  } catch {
    const values = new Map();
    return {
      getItem: (key) => values.get(key) ?? null,
      setItem: (key, value) => values.set(key, value),
      removeItem: (key) => values.delete(key),
    };
  }
}

const tab = storage("sessionStorage");
const TOKEN = "sennit.token";
const ACTING = "sennit.acting";

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Whether the same request may succeed later. */
export const mayPass = (error) => error.status === 0 || error.status === 429 || error.status >= 500;

export const session = {
  get token() {
    return tab.getItem(TOKEN) ?? "";
  },
  set token(value) {
    if (value) tab.setItem(TOKEN, value);
    else tab.removeItem(TOKEN);
  },
  /** Whom to act for: {token} or {clearance, scopes}; null for oneself. */
  get acting() {
    return JSON.parse(tab.getItem(ACTING) ?? "null");
  },
  set acting(value) {
    if (value) tab.setItem(ACTING, JSON.stringify(value));
    else tab.removeItem(ACTING);
  },
};

let onReached = () => {};
/** Hear of every call whether the service answered it. */
export function whenReached(action) {
  onReached = action;
}

let onUnauthorized = () => {};
export function whenUnauthorized(action) {
  onUnauthorized = action;
}

/** Call a route and return its JSON, or its text where it answers with text. */
export async function call(method, path, { body, signal, token = session.token, asSelf = false } = {}) {
  const headers = {};
  if (token) headers.authorization = `Bearer ${token}`;
  if (session.acting && !asSelf) headers["x-sennit-as"] = encodeURIComponent(JSON.stringify(session.acting));
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    onReached(false);
    throw new ApiError(0, "unreachable", "The service does not answer. Is it still running?");
  }
  onReached(true);
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  const value = isJson ? await response.json() : await response.text();
  if (response.ok) return value;
  // A late answer to an earlier token says nothing about the present one.
  if (response.status === 401 && token === session.token) onUnauthorized();
  const { code = "error", message = `The service answered ${response.status}.` } = value?.error ?? {};
  throw new ApiError(response.status, code, message);
}

export const get = (path, options) => call("GET", path, options);
export const post = (path, body, options) => call("POST", path, { ...options, body });
export const remove = (path, options) => call("DELETE", path, options);

export function query(parameters) {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") out.append(name, one);
    }
  }
  return out.toString();
}

/** Run calls of which only the latest counts: an earlier one is aborted, and its answer never arrives. */
export function latest() {
  let controller;
  const run = async (work) => {
    controller?.abort();
    const own = (controller = new AbortController());
    try {
      const value = await work(own.signal);
      return own === controller ? value : undefined;
    } catch (error) {
      if (own !== controller || error.name === "AbortError") return undefined;
      throw error;
    }
  };
  run.cancel = () => {
    controller?.abort();
    controller = undefined;
  };
  return run;
}

/** Make work that a second click does not begin again while it is under way. */
export function once(work) {
  let isRunning = false;
  return async (...values) => {
    if (isRunning) return undefined;
    isRunning = true;
    try {
      return await work(...values);
    } finally {
      isRunning = false;
    }
  };
}

/** Make work that runs once at a time: what is asked for meanwhile runs once more, afterwards. */
export function serial(work) {
  let isWanted = false;
  const repeat = once(async () => {
    while (isWanted) {
      isWanted = false;
      await work();
    }
  });
  return () => {
    isWanted = true;
    return repeat();
  };
}
