/** Lower case of ASCII letters alone, as SQLite's `lower`. */
export function asciiLower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
