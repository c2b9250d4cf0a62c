/** Calls as letters: equal calls have the same letter, so that A B A B is easy to see. A run becomes one entry. Pure. */

import type { PastCallView } from "#types";

export interface Run {
  /** The letter of the call; empty if the call cannot be compared. */
  letter: string;
  call: PastCallView;
  /** How many in a row. */
  length: number;
  /** When the last of them ended. */
  at: string;
}

/** The calls as runs, oldest first. */
export function runs(calls: readonly PastCallView[]): Run[] {
  const letters = new Map<string, string>();
  const found: Run[] = [];
  for (const call of calls) {
    const letter = call.tool === null ? "" : letterOf(letters, `${call.tool}\n${call.args}\n${call.outcome}\n${call.failed}`);
    const last = found.at(-1);
    if (last && letter !== "" && last.letter === letter) {
      last.length += 1;
      last.at = call.at;
    } else {
      found.push({ letter, call, length: 1, at: call.at });
    }
  }
  return found;
}

function letterOf(letters: Map<string, string>, key: string): string {
  const known = letters.get(key);
  if (known !== undefined) return known;
  const n = letters.size;
  const letter = n < 26 ? String.fromCharCode(65 + n) : `${String.fromCharCode(65 + (n % 26))}${Math.floor(n / 26)}`;
  letters.set(key, letter);
  return letter;
}
