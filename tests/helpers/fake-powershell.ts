/** What PowerShell of a Windows host would get from a command line and its input, and a program that shows it. */
import { objectOf } from '../../src/lib/json/index.ts'
import type { FakeWinrm } from './fake-winrm.ts'

const utf16Of = (base64: string): string => Buffer.from(base64, 'base64').toString('utf16le')

/** The text that PowerShell runs. */
export async function powershellText(line: string, input: Promise<Buffer>): Promise<string> {
  const [, encoded = ''] = /^powershell\.exe -NonInteractive -EncodedCommand ([A-Za-z0-9+/=]+)$/.exec(line) ?? []
  const text = utf16Of(encoded)
  return text.includes('FromBase64String(-join @($input))') ? utf16Of((await input).toString()) : text
}

export interface ScriptCall {
  script: string
  /** Names as they are written, and values. */
  words: unknown[]
}

/** Reads `& {<script>} <words>`. The script must not have braces of its own. */
export function readCall(text: string): ScriptCall {
  const [, script, words = ''] = /^& \{\n([^{}]*)\n\} ([^]*)$/.exec(text) ?? []
  return script === undefined ? { script: text, words: [] } : { script, words: readWords(words) }
}

const QUOTES = "'\u2018\u2019\u201a\u201b"

/** The arguments of a command, as PowerShell reads literals: an own reading, to hold that of the product. */
export function readWords(text: string): unknown[] {
  let at = 0
  const take = (word: string): boolean => {
    if (!text.startsWith(word, at)) return false
    at += word.length
    return true
  }
  const need = (word: string): void => {
    if (!take(word)) throw new Error(`no ${word} at ${at} of ${text}`)
  }
  const literal = (): string => {
    let read = ''
    for (at += 1; at < text.length; at++) {
      const character = text.charAt(at)
      if (QUOTES.includes(character)) {
        if (!QUOTES.includes(text.charAt(at + 1) || ' ')) {
          at += 1
          return read
        }
        at += 1
      }
      read += text.charAt(at)
    }
    throw new Error(`a string without end in ${text}`)
  }
  const list = (end: string, separator: string, item: () => void): void => {
    while (!take(end)) {
      item()
      if (!text.startsWith(end, at)) need(separator)
    }
  }
  const value = (): unknown => {
    if (QUOTES.includes(text.charAt(at) || ' ')) return literal()
    if (take('$null')) return null
    if (take('$true')) return true
    if (take('$false')) return false
    if (take('(')) {
      let joined = ''
      list(')', ' + ', () => {
        joined += take('[char]0') ? '\0' : literal()
      })
      return joined
    }
    if (take('@(')) {
      const items: unknown[] = []
      const isNested = take(',')
      list(')', ', ', () => items.push(value()))
      // PowerShell lays out an array that is the only item.
      return !isNested && items.length === 1 && Array.isArray(items[0]) ? items[0] : items
    }
    if (take('@{')) {
      const pairs: [string, unknown][] = []
      list('}', '; ', () => {
        const key = value()
        need(' = ')
        pairs.push([String(key), value()])
      })
      return objectOf(pairs)
    }
    const [number] = /^-?\d[\d.eE+-]*/.exec(text.slice(at)) ?? []
    if (number === undefined) throw new Error(`no value at ${at} of ${text}`)
    at += number.length
    return Number(number)
  }
  const words: unknown[] = []
  while (at < text.length) {
    const [name] = /^-[\p{L}_][\p{L}\p{N}_-]*:?/u.exec(text.slice(at)) ?? []
    if (name === undefined) {
      words.push(value())
    } else {
      words.push(name)
      at += name.length
      if (name.endsWith(':')) words.push(value())
    }
    if (at < text.length) need(' ')
  }
  return words
}

/**
 * Lets a host run PowerShell: what it gets is a script for sh, whose arguments are the words, text as it is and other
 * values as JSON.
 *
 * @returns the texts that PowerShell got so far
 */
export function runPowershell(fake: FakeWinrm): string[] {
  const texts: string[] = []
  fake.program = async (line, input) => {
    if (!line.startsWith('powershell.exe ')) return { file: '/bin/sh', args: ['-c', line] }
    const text = await powershellText(line, input)
    texts.push(text)
    const { script, words } = readCall(text)
    const args = words.map((word) => (typeof word === 'string' ? word : JSON.stringify(word)))
    return { file: '/bin/sh', args: ['-c', script, 'sh', ...args] }
  }
  return texts
}
