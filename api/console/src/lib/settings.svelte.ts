// What a person prefers: language and theme. Kept by the browser; says nothing about who one is.
import { en, type Strings } from "../strings/en";
import { zh } from "../strings/zh";

export type Language = "en" | "zh";
export type Theme = "system" | "light" | "dark";

const TABLES: Record<Language, Strings> = { en, zh };
const STORED_LANGUAGE = "browserspace.language";
const STORED_THEME = "browserspace.theme";

class Settings {
  language = $state<Language>(firstLanguage());
  theme = $state<Theme>(firstTheme());

  get t(): Strings {
    return TABLES[this.language];
  }

  setLanguage(language: Language): void {
    this.language = language;
    store(STORED_LANGUAGE, language);
    this.apply();
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    store(STORED_THEME, theme);
    this.apply();
  }

  /** Puts both on the document. */
  apply(): void {
    document.documentElement.lang = this.language === "zh" ? "zh-Hans" : "en";
    document.documentElement.dataset.theme = this.theme;
  }
}

export const settings = new Settings();

function firstLanguage(): Language {
  const stored = readStored(STORED_LANGUAGE);
  if (stored === "en" || stored === "zh") return stored;
  return typeof navigator !== "undefined" && navigator.language.startsWith("zh") ? "zh" : "en";
}

function firstTheme(): Theme {
  const stored = readStored(STORED_THEME);
  return stored === "light" || stored === "dark" ? stored : "system";
}

function readStored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function store(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // It holds until the page is left.
  }
}
