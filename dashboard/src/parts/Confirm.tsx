/** A dialog before an act: what will happen, a reason, and a way to cancel. One at a time; the browser keeps the focus inside. */

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Question {
  title: string;
  /** What will happen, in a sentence. */
  text: string;
  /** The label of a text field; without a label there is no field. */
  ask?: string;
  /** Whether the text is required: whoever ends an agent gives a reason. */
  required?: boolean;
  /** The initial text. */
  words?: string;
  /** A box to tick, such as "start it anew". */
  option?: string;
  /** The button that does it. */
  act: string;
  danger?: boolean;
}

export interface Confirmed {
  words: string;
  option: boolean;
}

interface Open extends Question {
  settle: (answer: Confirmed | null) => void;
}

const open = signal<Open | null>(null);

/** Ask; null if the answer is no. */
export function confirm(question: Question): Promise<Confirmed | null> {
  open.value?.settle(null);
  return new Promise((settle) => {
    open.value = { ...question, settle };
  });
}

export function isAsking(): boolean {
  return open.value !== null;
}

export function Confirm() {
  const question = open.value;
  return question && <Dialog key={question.title} question={question} />;
}

function Dialog({ question }: { question: Open }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const [words, setWords] = useState(question.words ?? "");
  const [option, setOption] = useState(false);
  useEffect(() => {
    dialog.current?.showModal();
    field.current?.focus();
  }, []);

  const answer = (given: Confirmed | null) => {
    dialog.current?.close();
    open.value = null;
    question.settle(given);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (!question.required || words.trim()) answer({ words: words.trim(), option });
  };
  return (
    <dialog
      ref={dialog}
      class="confirm"
      aria-labelledby="confirm-title"
      onCancel={(event) => {
        event.preventDefault();
        answer(null);
      }}
    >
      <form onSubmit={submit}>
        <h2 id="confirm-title">
          <bdi>{question.title}</bdi>
        </h2>
        <p>
          <bdi>{question.text}</bdi>
        </p>
        {question.ask !== undefined && (
          <label>
            {question.ask}
            <textarea
              ref={field}
              rows={3}
              maxLength={2000}
              required={question.required ?? false}
              value={words}
              onInput={(event) => setWords(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
              }}
            />
          </label>
        )}
        {question.option !== undefined && (
          <label class="tick">
            <input
              type="checkbox"
              checked={option}
              onChange={(event) => setOption(event.currentTarget.checked)}
            />
            {question.option}
          </label>
        )}
        <div class="buttons">
          <button type="button" onClick={() => answer(null)}>
            Cancel
          </button>
          <button type="submit" class={question.danger ? "danger" : "primary"}>
            {question.act}
          </button>
        </div>
      </form>
    </dialog>
  );
}
