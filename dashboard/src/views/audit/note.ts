/** A signed checkpoint of the audit log: whose log, how many entries, the root of their tree. Pure. */

export interface Note {
  origin: string;
  size: number;
  /** In base64. */
  root: string;
  signed: boolean;
}

/** Parse a note; null if the text is none. */
export function readNote(text: string): Note | null {
  const [origin, size, root, empty, signature] = text.split("\n");
  if (!origin || !root || empty !== "" || !/^\d+$/.test(size ?? "")) return null;
  return { origin, size: Number(size), root, signed: signature?.startsWith("— ") ?? false };
}
