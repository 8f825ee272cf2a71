/** The panels of the page, in the order of their buttons. A new one is one line here. */

import { ExplainPanel } from "./explain_panel.js";
import type { MakePanel } from "./panel.js";

export const PANELS: readonly MakePanel[] = [(host) => new ExplainPanel(host)];
