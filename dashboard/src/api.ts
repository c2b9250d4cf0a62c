/**
 * Requests to the hub. The cookie identifies us; a failure is an `ApiError` with the hub's own message.
 *
 * An act carries an `Idempotency-Key`: if its answer is lost, repeating the request does nothing twice.
 */

import { heard, signedOut } from "./contact";
import type { ProblemDetails } from "#types";

export { signedOut } from "./contact";

export class ApiError extends Error {
  constructor(
    /** 0 if the hub could not be reached at all. */
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly field: string | null = null,
  ) {
    super(detail || title);
  }

  /** Whether the same request may succeed a little later. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

const TIMEOUT_MS = 15_000;

type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

export function get<T>(path: string, query: Query = {}): Promise<T> {
  return ask<T>("GET", path + written(query));
}

/** An act, or another change. Requests with the same `key` are one act; by default every call gets its own key. */
export function post<T>(path: string, body?: unknown, key: string = newKey()): Promise<T> {
  return ask<T>("POST", path, body, key);
}

export function remove(path: string): Promise<void> {
  return ask<void>("DELETE", path);
}

/** Encode a part of a path: an id may contain a slash. */
export const inPath = encodeURIComponent;

export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

/** An answer that is text, not JSON. */
export function getText(path: string): Promise<string> {
  return answered("GET", path);
}

async function ask<T>(method: string, url: string, body?: unknown, key?: string): Promise<T> {
  const text = await answered(method, url, body, key);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

async function answered(method: string, url: string, body?: unknown, key?: string): Promise<string> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (key !== undefined) headers["Idempotency-Key"] = key;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(url, {
      method,
      headers,
      credentials: "same-origin",
      cache: "no-store",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    text = await answer.text();
  } catch (error) {
    throw new ApiError(0, "The hub cannot be reached", String(error));
  }
  heard();
  if (answer.status === 401) signedOut.value = true;
  if (!answer.ok) throw problem(answer.status, text);
  return text;
}

/** The hub's own error. An answer without problem details came from something between the hub and us. */
export function problem(status: number, text: string): ApiError {
  try {
    const said = JSON.parse(text) as ProblemDetails;
    return new ApiError(status, said.title ?? "", said.detail ?? "", said.field ?? null);
  } catch {
    return new ApiError(status, `The answer was ${status}`, text.slice(0, 200));
  }
}

function written(query: Query): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  return search.size ? `?${search}` : "";
}
