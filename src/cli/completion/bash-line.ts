/**
 * The command line as bash hands it over: not yet read, with quotes and backslashes. What completes it replaces only the
 * end of it, from the last of bash's word breaks on, and has to be quoted as the user has begun to.
 */

export interface BashLine {
  /** As the program would get them; the last one ends at the cursor. */
  words: string[]
  /** Of the last word, the part that stays as it is typed. */
  kept: string
  /** The quote that is open at the cursor. */
  quote: '' | "'" | '"'
}

/** @param line up to the cursor. @param breaks the characters of COMP_WORDBREAKS */
export function readBashLine(line: string, breaks: string): BashLine {
  const words: string[] = []
  let word: string | undefined
  let kept = ''
  let quote: BashLine['quote'] = ''
  for (let index = 0; index < line.length; index += 1) {
    const character = line.charAt(index)
    const next = line.charAt(index + 1)
    if (quote === "'") {
      if (character === "'") quote = ''
      else word = `${word ?? ''}${character}`
    } else if (character === '\\' && (quote === '' || '"\\$`'.includes(next))) {
      // One that the cursor stands behind has nothing to escape yet.
      word = `${word ?? ''}${next}`
      index += 1
    } else if (quote === '"') {
      if (character === '"') quote = ''
      else word = `${word ?? ''}${character}`
    } else if (character === "'" || character === '"') {
      word ??= ''
      quote = character
      kept = word
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
      kept = ''
    } else {
      word = `${word ?? ''}${character}`
      if (breaks.includes(character)) kept = word
    }
  }
  return { words: [...words, word ?? ''], kept, quote }
}

/** What bash has to put into the line for a whole word. */
export function toBashText(text: string, { kept, quote }: Pick<BashLine, 'kept' | 'quote'>): string {
  const rest = text.slice(kept.length)
  if (quote === "'") return rest.replaceAll("'", `'\\''`)
  // Nothing else keeps bash from looking for an earlier command.
  if (quote === '"') return rest.replace(/[\\"$`]/g, '\\$&').replaceAll('!', `"'!'"`)
  const escaped = rest.replace(/[^\p{L}\p{N}\p{M}_./,:=@%+-]/gu, '\\$&')
  // After one of these bash expects a command, even when a backslash stands before it.
  return /[;|&{(`]$/.test(rest) ? `${escaped}''` : escaped
}
