/** Who needs a person now: for the first page, and for the corner of the eye (the window's title, the head of every page). */

import { computed } from "@preact/signals";
import { agents } from "./agents";
import { needs } from "./needs";
import { alerts, fleet } from "./state";

export const needing = computed(() => {
  void agents.moved.value;
  return needs(agents.all.values(), fleet.value, alerts.value);
});
