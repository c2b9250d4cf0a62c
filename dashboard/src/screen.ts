/** Whether there is room for columns. The style sheet uses the same width. */

import { signal } from "@preact/signals";

const phone = matchMedia("(max-width: 700px)");

export const narrow = signal(phone.matches);

phone.addEventListener("change", () => {
  narrow.value = phone.matches;
});
