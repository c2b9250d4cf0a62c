/** Alerts with who has taken them on, and silences. */

import type { Alert as Plain, Moment } from "../types";

export interface Acknowledgement {
  by: string;
  at: Moment;
  reason: string;
  until: Moment | null;
}

export interface Alert extends Plain {
  key: string;
  kind: string;
  open: boolean;
  acknowledged: Acknowledgement | null;
  silenced_by: string;
}

export interface AlertList {
  alerts: Alert[];
  before: number | null;
}

export interface Silence {
  id: string;
  agents: string[];
  kinds: string[];
  roles: string[];
  by: string;
  reason: string;
  from_at: Moment | null;
  until_at: Moment;
  active: boolean;
  configured: boolean;
}

export interface SilenceList {
  silences: Silence[];
}
