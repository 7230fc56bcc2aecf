// Pages that only show charts.
import { adopt } from "./plots.js";

adopt(document);
