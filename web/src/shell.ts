/** Words of command lines that people copy from a page into a terminal. */
import { writeJson } from './json.ts'

/** One word for shells of POSIX, whatever it holds. */
export function quote(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word
  return `'${word.replaceAll("'", String.raw`'\''`)}'`
}

const HIDDEN = /[\p{Cc}\p{Cf}\u2028\u2029]/u

/**
 * Whether a text shows itself as it is. Characters that control something could, once they are pasted, end the paste and
 * press keys, or show another command than the one that runs.
 */
export function isPlain(text: string): boolean {
  return text.isWellFormed() && !HIDDEN.test(text)
}

/** JSON on one line, in which every character shows itself as it is. */
export function plainJson(value: unknown): string {
  return (writeJson(value) ?? 'null').replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
    Array.from({ length: character.length }, (_, i) => {
      const unit = character.charCodeAt(i)
      return `\\u${unit.toString(16).padStart(4, '0')}`
    }).join(''),
  )
}
