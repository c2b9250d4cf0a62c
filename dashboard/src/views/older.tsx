/** Older pages of a list whose first page stays current. */

import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api";

interface Page<T> {
  items: readonly T[];
  /** Where the next page begins; null if this was the last. */
  next: number | null;
}

/** `key` names the list: another key starts over. `first` is the start of the second page. */
export function useOlder<T>(key: string, first: number | null, load: (before: number) => Promise<Page<T>>) {
  const [loaded, setLoaded] = useState<{ items: readonly T[]; next: number | null; begun: boolean }>({
    items: [],
    next: null,
    begun: false,
  });
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    setLoaded({ items: [], next: null, begun: false });
    setProblem(null);
  }, [key]);
  const next = loaded.begun ? loaded.next : first;
  const more = async () => {
    if (next === null || busy) return;
    setBusy(true);
    try {
      const page = await load(next);
      setLoaded((was) => ({ items: [...was.items, ...page.items], next: page.next, begun: true }));
      setProblem(null);
    } catch (error) {
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
    setBusy(false);
  };
  const button = (
    <p class="older">
      {problem !== null && <span class="wrong">{problem} </span>}
      {next !== null && (
        <button type="button" disabled={busy} onClick={() => void more()}>
          {busy ? "Loading …" : "Older"}
        </button>
      )}
    </p>
  );
  return { items: loaded.items, button };
}
