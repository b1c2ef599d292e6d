// What makes a report's page alive where scripts may run. The page is whole without it:
// all that is shown stands in it as text and SVG, and is only moved about here.

import { axes } from "./axis.ts";
import { copyButtons, scrollers } from "./copy.ts";
import { flames } from "./flame.ts";
import { lightOrDark } from "./light.ts";
import { saveButtons } from "./save.ts";

axes();
flames();
copyButtons();
scrollers();
saveButtons();
lightOrDark();
