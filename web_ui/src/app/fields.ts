/** The fields of the form: one for each of the server's settings. */

import type { FieldOut } from "../records.js";

export type { FieldOut as Field, FormOut as FormFields, GroupOut as Group } from "../records.js";

export type Kind = FieldOut["kind"];
