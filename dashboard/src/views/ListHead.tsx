/** The head of a list: what it is, what is in it, and what to show of it. */

import type { ComponentChildren } from "preact";
import type { ApiError } from "../api";

export function ListHead({
  title,
  text,
  children,
}: {
  title: string;
  text?: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="list-head">
      <h1 id="list-title">{title}</h1>
      <p class="shown" aria-live="polite">
        {text}
      </p>
      {children}
    </div>
  );
}

/** Why a list cannot be had, if it cannot. */
export function Failed({ problem }: { problem: ApiError | null }) {
  if (problem === null) return null;
  return (
    <p class="problem" role="alert">
      {problem.title || "This cannot be had right now"}
      {problem.detail && problem.detail !== problem.title && (
        <>
          : <bdi>{problem.detail}</bdi>
        </>
      )}
    </p>
  );
}
