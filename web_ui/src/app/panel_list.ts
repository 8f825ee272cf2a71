/** The panels of the page, in the order of their buttons. A new one is one line here. */

import { EditPanel } from "../edit/panel.js";
import { ExplainPanel } from "./explain_panel.js";
import { FrontPanel } from "./front_panel.js";
import type { MakePanel } from "./panel.js";
import { SearchPanel } from "./search_panel.js";

export const PANELS: readonly MakePanel[] = [
  (host) => new SearchPanel(host),
  (host) => new FrontPanel(host),
  (host) => new ExplainPanel(host),
  (host) => new EditPanel(host),
];
