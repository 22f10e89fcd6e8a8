const kSuggestions = [
  { prompt: "Look around: who and where are you?", title: "Look around", hint: "who, where, what" },
  { prompt: "Write a program that prints the primes up to 20 and run it.", title: "Write a program", hint: "output as it comes" },
  { prompt: "Download https://example.com/ for me.", title: "Download a page", hint: "the policy refuses it" },
  { prompt: "Make a build folder, then delete it.", title: "Delete something", hint: "you are asked first" },
  { prompt: "Start something that hangs forever.", title: "Hang forever", hint: "its time runs out" },
  { prompt: "Use up all the memory.", title: "Eat the memory", hint: "the kernel ends it" },
  { prompt: "Start a fork bomb.", title: "Fork bomb", hint: "the process limit holds" },
  { prompt: "Fill the disk.", title: "Fill the disk", hint: "it has an end" },
];

export function Suggestions({ large = false, disabled, onPick }: { large?: boolean; disabled: boolean; onPick: (prompt: string) => void }) {
  return (
    <ul className={large ? "suggestions large" : "suggestions"} aria-label="Examples" tabIndex={!large && disabled ? 0 : undefined}>
      {kSuggestions.map(({ prompt, title, hint }) => (
        <li key={title}>
          <button type="button" disabled={disabled} onClick={() => onPick(prompt)} title={prompt}>
            <strong>{title}</strong>
            {large && <span>{hint}</span>}
          </button>
        </li>
      ))}
    </ul>
  );
}
