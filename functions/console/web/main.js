/** Starts the console. @module */

import { hatch } from "./chart/columns.js";
import { session } from "./session.js";
import { Shell } from "./shell.js";

session.signInFromAddress();
// A link with another token that is opened in this tab changes only the fragment.
addEventListener("hashchange", () => session.signInFromAddress());
document.body.append(hatch(), new Shell());
