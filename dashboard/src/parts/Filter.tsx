/** One choice of several, as a row of buttons, or a list where there is no room for one. */

interface Props<T extends string> {
  label: string;
  value: T;
  choices: readonly (readonly [T, string])[];
  onChange: (value: T) => void;
}

export function Choice<T extends string>({ label, value, choices, onChange }: Props<T>) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {choices.map(([key, words]) => (
          <option key={key} value={key}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A field to search with; Escape empties it. */
export function Search({
  id,
  value,
  label,
  onInput,
}: {
  id: string;
  value: string;
  label: string;
  onInput: (text: string) => void;
}) {
  return (
    <input
      id={id}
      type="search"
      class="search"
      placeholder={label}
      aria-label={label}
      autocomplete="off"
      spellcheck={false}
      value={value}
      onInput={(event) => onInput(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        onInput("");
        event.currentTarget.blur();
      }}
    />
  );
}
