import { shown } from './shown.ts'

export interface IniValue {
  /** Without surrounding blanks; the lines of a continued value are joined by `\n`. */
  text: string
  /** Line of the key, counted from 1. */
  line: number
}

export interface IniProblem {
  line: number
  message: string
}

export interface IniFile {
  /** Section name as written → lower-case key → value. */
  sections: Map<string, Map<string, IniValue>>
  problems: IniProblem[]
}

const maximumProblems = 50
const controlCharacter = /[^\P{Cc}\t]/u

/** Parses the bytes of a file; invalid UTF-8 is a problem of its line. */
export function parseIniBytes(bytes: Uint8Array): IniFile {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    return parseIni(decoder.decode(bytes))
  } catch {
    return { sections: new Map(), problems: [{ line: firstInvalidLine(bytes), message: 'is not valid UTF-8' }] }
  }
}

function firstInvalidLine(bytes: Uint8Array): number {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let line = 1
  for (let start = 0; start < bytes.length; line += 1) {
    const newline = bytes.indexOf(0x0a, start)
    const end = newline === -1 ? bytes.length : newline + 1
    try {
      decoder.decode(bytes.subarray(start, end))
    } catch {
      return line
    }
    start = end
  }
  return line
}

export function parseIni(text: string): IniFile {
  const sections: IniFile['sections'] = new Map()
  const problems: IniProblem[] = []
  const report = (line: number, message: string): void => {
    if (problems.length < maximumProblems) problems.push({ line, message })
    else if (problems.length === maximumProblems) problems.push({ line, message: 'and more; the rest is not listed' })
  }

  let section: Map<string, IniValue> | undefined
  let sectionIsKnown = false
  let open: { value: IniValue; lines: string[]; indent: number } | undefined
  const close = (): void => {
    if (open !== undefined) open.value.text = open.lines.join('\n').trim()
    open = undefined
  }

  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/)
  for (const [index, raw] of lines.entries()) {
    const number = index + 1
    const content = raw.trim()
    if (content === '') {
      open?.lines.push('')
      continue
    }
    if (content.startsWith('#') || content.startsWith(';')) continue
    if (controlCharacter.test(raw)) {
      report(number, 'holds a control character')
      continue
    }
    const indent = raw.length - raw.trimStart().length
    if (open !== undefined && indent > open.indent) {
      open.lines.push(content)
      continue
    }
    close()

    if (content.startsWith('[')) {
      const header = /^\[([^\]]*)\]\s*(?:[#;].*)?$/.exec(content)
      const name = header?.[1]?.trim() ?? ''
      sectionIsKnown = true
      if (name === '') {
        report(number, `${shown(content)} is not a section; write it as [name]`)
        section = undefined
        continue
      }
      section = sections.get(name) ?? new Map<string, IniValue>()
      sections.set(name, section)
      continue
    }

    const delimiter = content.search(/[=:]/)
    if (delimiter === -1) {
      report(number, `"${shown(content)}" is neither a [section] nor "option = value"`)
      continue
    }
    const key = content.slice(0, delimiter).trim().toLowerCase()
    if (key === '') {
      report(number, `"${shown(content)}" has no option name before the ${content.charAt(delimiter)}`)
      continue
    }
    const value: IniValue = { text: '', line: number }
    open = { value, lines: [content.slice(delimiter + 1).trim()], indent }
    if (section === undefined) {
      if (!sectionIsKnown) report(number, `"${shown(key)}" stands before the first [section]`)
      continue
    }
    const earlier = section.get(key)
    if (earlier !== undefined) {
      report(number, `"${shown(key)}" was set on line ${earlier.line} already; keep one of the two lines`)
      continue
    }
    section.set(key, value)
  }
  close()
  return { sections, problems }
}
