// The address, as state.
import { format, parse, type Place, type Route } from "./route";

class Address {
  place = $state.raw<Place>(parse(location.hash));

  constructor() {
    addEventListener("hashchange", () => {
      this.place = parse(location.hash);
    });
  }

  go(workspace: string, route: Route): void {
    location.hash = format(workspace, route);
  }

  /** Says where one is without a new entry in the browser's history. */
  replace(workspace: string, route: Route): void {
    history.replaceState(null, "", format(workspace, route));
  }
}

export const address = new Address();
