/** The page of `pipeplan serve`. */

import "./app.css";
import { Page } from "./page.js";

void new Page().start();
