/** Recoveries: agents that are started anew. */

import type { Moment } from "../types";

export type Phase = "idle" | "waiting" | "verifying" | "starting" | "probation" | "review" | "quarantined";

export interface RecoveryOfAgent {
  agent_id: string;
  phase: Phase;
  on_its_way: boolean;
  needs_a_person: boolean;
  attempt: number;
  failures: number;
  reason: string;
  checkpoint_id: string | null;
  read_back: boolean | null;
  next_at: Moment | null;
}

export interface RecoveryStep {
  event_id: number;
  at: Moment;
  agent_id: string;
  task_id: string | null;
  stage: "initiated" | "completed" | "failed";
  attempt: number;
  checkpoint_id: string | null;
  reason: string;
}

export interface Recoveries {
  active: { task_id: string | null; recovery: RecoveryOfAgent }[];
  steps: RecoveryStep[];
  completed: number;
  failed: number;
  success_rate: number | null;
  complete: boolean;
}
