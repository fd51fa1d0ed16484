// The address of a view: #/search?q=…&recipe=…. It is a fragment, so no server sees it. It never has a token.

export function readAddress() {
  const [path, parameters = ""] = location.hash.replace(/^#/, "").split("?");
  return { view: path.replace(/^\//, "") || "search", parameters: new URLSearchParams(parameters) };
}

export function makeAddress(view, parameters) {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one) out.append(name, one);
  }
  const text = out.toString();
  return `#/${view}${text ? `?${text}` : ""}`;
}

/** Go to a view. */
export function visit(view, parameters) {
  location.hash = makeAddress(view, parameters);
}

/** Return what changes the address of a view that is now shown. Once another address is chosen, it changes nothing. */
export function keepAddress(view) {
  let own = location.hash;
  return (parameters) => {
    if (location.hash !== own) return;
    history.replaceState(null, "", makeAddress(view, parameters));
    own = location.hash;
  };
}
