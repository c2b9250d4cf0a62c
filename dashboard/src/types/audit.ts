/** The audit log: who did what, and the proof of it. */

import type { Moment } from "../types";

export interface AuditEntry {
  n: number;
  at: Moment;
  who: string;
  what: string;
  agent_id: string;
  detail: string;
}

export interface AuditList {
  entries: AuditEntry[];
  before: number | null;
}

export interface AuditProof {
  n: number;
  entry: string | null;
  leaf: string;
  size: number;
  proof: string[];
  checkpoint: string;
}
