/**
 * What the page shows, as its address: a view, and settings in the query. A link reproduces what its sender saw.
 *
 * @module
 */

const BASE = "/console";
/** All settings, in the order in which an address has them. */
const SETTINGS =
  "project from to interval by a b points status conversation turn channel outcome user feedback at".split(" ");
/** Settings that another view has, too. */
const SHARED = ["project", "from", "to", "by"];
/** Settings of one project and period, without which a view shows all of it. */
const WHOLE = { conversation: "", turn: "", feedback: "", at: "" };

/** @typedef {{ view: string, [setting: string]: string }} Route A setting that the address does not have is "". */

class Router extends EventTarget {
  constructor() {
    super();
    addEventListener("popstate", () => this.dispatchEvent(new Event("change")));
  }

  /** @returns {Route} */
  get current() {
    const query = new URLSearchParams(location.search);
    const settings = SETTINGS.map((name) => [name, query.get(name) ?? ""]);
    return { ...Object.fromEntries(settings), view: location.pathname.slice(BASE.length + 1).replace(/\/$/, "") };
  }

  /** The address of a route. @param {Partial<Route>} route */
  address(route) {
    const query = new URLSearchParams();
    for (const name of SETTINGS) {
      if (route[name]) {
        query.set(name, route[name]);
      }
    }
    const search = query.size > 0 ? `?${query}` : "";
    return `${BASE}/${route.view}${search}`;
  }

  /** The route of another view, with the settings that both have. @param {string} view @returns {Route} */
  to(view) {
    const { current } = this;
    const kept = SETTINGS.map((name) => [name, SHARED.includes(name) || view === current.view ? current[name] : ""]);
    return { ...Object.fromEntries(kept), ...WHOLE, view };
  }

  /** Goes to another project or period, from a part of it to the whole. @param {Partial<Route>} changes */
  goToWhole(changes) {
    this.go({ ...WHOLE, ...changes });
  }

  /**
   * Changes settings, as a step that the Back button undoes. Without a change, the view is loaded again.
   *
   * @param {Partial<Route>} changes
   */
  go(changes) {
    const address = this.address({ ...this.current, ...changes });
    if (address !== location.pathname + location.search) {
      history.pushState(null, "", address);
    }
    this.dispatchEvent(new Event("change"));
  }

  /** Completes the address. Nobody is notified. @param {Partial<Route>} changes */
  complete(changes) {
    history.replaceState(history.state, "", this.address({ ...this.current, ...changes }));
  }
}

export const router = new Router();

/**
 * Opens a link within the page, unless the user wants a new tab or window.
 *
 * @param {HTMLAnchorElement} link
 * @param {() => void} open
 */
export function openWithin(link, open) {
  link.addEventListener("click", (event) => {
    if (event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      open();
    }
  });
}
