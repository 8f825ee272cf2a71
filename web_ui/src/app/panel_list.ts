/** The panels of the page, after that of the schedules, in the order of their buttons. A new one is one line here. */

import { EditPanel } from "../edit/panel.js";
import { ExplainPanel } from "./explain_panel.js";
import { isInstalled } from "./extensions.js";
import { FrontPanel } from "./front_panel.js";
import type { Host, MakePanel } from "./panel.js";
import { SearchPanel } from "./search_panel.js";

export const PANELS: readonly MakePanel[] = [
  ...(isInstalled("search") ? [(host: Host) => new SearchPanel(host), (host: Host) => new FrontPanel(host)] : []),
  (host) => new ExplainPanel(host),
  (host) => new EditPanel(host),
];
