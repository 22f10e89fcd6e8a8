// How foreign text is made fit to be shown. All of it ends as text nodes; this is about characters that would lie to the reader.

/** A command as it will be executed: characters that hide or turn text around are spelt out. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Output of a program without terminal commands; what a carriage return would have painted over is dropped. */
export function plain(text: string): string {
  return text
    .replace(/\u001b\][^\u0007\u001b]*(\u0007|\u001b\\)?|\u001b\[[0-9;?<=>]*[ -/]*[@-~]|\u001b./g, "")
    .replace(/\r+\n/g, "\n")
    .replace(/^.*\r(?=.)/gm, "")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "");
}

export function bytes(count: number): string {
  if (count < 1024) return `${Math.round(count)} B`;
  if (count < 1048576) return `${Math.round(count / 1024)} KB`;
  const mega = count / 1048576;
  return mega < 10 ? `${mega.toFixed(1)} MB` : `${Math.round(mega)} MB`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function clock(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
