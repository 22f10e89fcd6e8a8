import { useEffect, useState } from "react";

const kThemes = ["auto", "light", "dark"] as const;
type Theme = (typeof kThemes)[number];
const kSigns: Record<Theme, string> = { auto: "◐", light: "☀", dark: "☾" };

function remembered(): Theme {
  const theme = localStorage.getItem("theme") as Theme | null;
  return theme && kThemes.includes(theme) ? theme : "auto";
}

export function ThemeButton() {
  const [theme, setTheme] = useState(remembered);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  const next = kThemes[(kThemes.indexOf(theme) + 1) % kThemes.length]!;
  return (
    <button type="button" className="button ghost icon" onClick={() => setTheme(next)} aria-label={`Colours: ${theme}. Change to ${next}`} title={`Colours: ${theme}`}>
      <span aria-hidden="true">{kSigns[theme]}</span>
    </button>
  );
}
