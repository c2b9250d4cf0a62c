/** The keys, on `?`. */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export const helping = signal(false);

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "search"],
  ["j k ↓ ↑", "next, previous agent"],
  ["Enter", "open the agent"],
  ["n", "nudge it"],
  ["t", "terminate it, with a reason"],
  ["Escape", "leave search or selection"],
  ["?", "this"],
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = helping.value;
  useEffect(() => {
    if (open) dialog.current?.showModal();
  }, [open]);
  if (!open) return null;
  return (
    <dialog
      ref={dialog}
      class="confirm help"
      aria-labelledby="help-title"
      onClose={() => (helping.value = false)}
    >
      <form method="dialog">
        <h2 id="help-title">Keys</h2>
        <dl>
          {KEYS.map(([key, what]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <div class="buttons">
          <button type="submit">Close</button>
        </div>
      </form>
    </dialog>
  );
}
