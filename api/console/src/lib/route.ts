// Where one is in the console, as the fragment of the address: it never goes to the server, and never holds a token.

export type Route =
  | { screen: "spaces" }
  | { screen: "create"; instance: string | null }
  | { screen: "space"; space: string }
  | { screen: "replay"; space: string; at: number | null }
  | { screen: "log"; at: number | null }
  | { screen: "instances" }
  | { screen: "bindings" }
  | { screen: "tokens" }
  | { screen: "nowhere" };

export interface Place {
  /** The Workspace; null where the address names none. */
  workspace: string | null;
  route: Route;
}

export function parse(fragment: string): Place {
  const [path = "", query = ""] = fragment.replace(/^#/, "").split("?");
  const params = new URLSearchParams(query);
  const parts = path.split("/").filter((part) => part !== "").map(decode);
  if (parts.length === 0) return { workspace: null, route: { screen: "spaces" } };
  if (parts[0] !== "w" || parts[1] === undefined) return { workspace: null, route: { screen: "nowhere" } };
  return { workspace: parts[1], route: routeOf(parts.slice(2), params) };
}

function routeOf(parts: string[], params: URLSearchParams): Route {
  const [screen = "spaces", id, sub, ...more] = parts;
  if (more.length > 0) return { screen: "nowhere" };
  switch (screen) {
    case "spaces":
      if (id === undefined) return { screen: "spaces" };
      if (id === "new") return { screen: "create", instance: params.get("instance") };
      if (sub === "replay") return { screen: "replay", space: id, at: place(params) };
      return sub === undefined ? { screen: "space", space: id } : { screen: "nowhere" };
    case "log":
      return { screen: "log", at: place(params) };
    case "instances":
    case "bindings":
    case "tokens":
      return id === undefined ? { screen } : { screen: "nowhere" };
    default:
      return { screen: "nowhere" };
  }
}

export function format(workspace: string, route: Route): string {
  const base = `#/w/${encodeURIComponent(workspace)}`;
  switch (route.screen) {
    case "spaces":
    case "nowhere":
      return `${base}/spaces`;
    case "create":
      return `${base}/spaces/new${route.instance === null ? "" : `?instance=${encodeURIComponent(route.instance)}`}`;
    case "space":
      return `${base}/spaces/${encodeURIComponent(route.space)}`;
    case "replay":
      return `${base}/spaces/${encodeURIComponent(route.space)}/replay${at(route.at)}`;
    case "log":
      return `${base}/log${at(route.at)}`;
    default:
      return `${base}/${route.screen}`;
  }
}

function at(place: number | null): string {
  return place === null ? "" : `?at=${place}`;
}

function place(params: URLSearchParams): number | null {
  const text = params.get("at") ?? "";
  return /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : null;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
