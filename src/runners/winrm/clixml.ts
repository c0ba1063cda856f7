/** Turns error output of PowerShell into text: it writes its messages to pipes as XML, between other text. */
import { SaxesParser } from 'saxes'
import type { ChildOutputOptions } from '../process/child-output.ts'

const HEAD = '#< CLIXML'
const ROOT = '<Objs '
/** Characters of one message; a longer one, or what is not XML, stays as it came. */
const MAX_MESSAGE_CHARACTERS = 1_048_576
const MAX_DEPTH = 64

/** What a console shows in front of a message, by its stream. Progress and what stdout repeats are not shown. */
const LABELS: ReadonlyMap<string, string | undefined> = new Map([
  ['error', undefined],
  ['warning', 'WARNING: '],
  ['verbose', 'VERBOSE: '],
  ['debug', 'DEBUG: '],
])

export function createClixmlFilter(): NonNullable<ChildOutputOptions['filter']> {
  /** The end of a text that may be the beginning of a head. */
  let held = ''
  let isLineStart = true
  /** Later documents may follow the first one without a head. */
  let heads = [HEAD]
  let document: ClixmlDocument | undefined

  function readText(text: string): { shown: string; rest: string } {
    const all = held + text
    held = ''
    const at = headIn(all, heads, isLineStart)
    const head = heads.find((one) => at !== undefined && all.startsWith(one, at))
    if (at !== undefined && head !== undefined) {
      document = createDocument()
      heads = [HEAD, ROOT]
      return { shown: all.slice(0, at), rest: all.slice(at) }
    }
    const end = at ?? all.length
    held = all.slice(end)
    if (end > 0) isLineStart = all[end - 1] === '\n'
    return { shown: all.slice(0, end), rest: '' }
  }

  function readDocument(text: string, { read }: ClixmlDocument): { shown: string; rest: string } {
    const { shown, rest, hasEnded } = read(text)
    if (hasEnded) {
      document = undefined
      isLineStart = true
    }
    return { shown, rest }
  }

  return {
    filter(text) {
      let shown = ''
      for (let rest = text; rest !== '';) {
        const read = document === undefined ? readText(rest) : readDocument(rest, document)
        shown += read.shown
        rest = read.rest
      }
      return shown
    },
    end: () => document?.end() ?? held,
  }
}

/** Where a head begins, at the start of a line; it may be cut off at the end of the text. */
function headIn(text: string, heads: readonly string[], isLineStart: boolean): number | undefined {
  for (let at = isLineStart ? 0 : text.indexOf('\n') + 1 || text.length; at < text.length;) {
    if (heads.some((head) => head.startsWith(text.slice(at, at + head.length)))) return at
    const next = text.indexOf('\n', at)
    if (next < 0) return undefined
    at = next + 1
  }
  return undefined
}

interface ClixmlDocument {
  /** `rest` does not belong to the document any more; it is empty unless that has ended. */
  readonly read: (text: string) => { shown: string; rest: string; hasEnded: boolean }
  /** What is left of a document without end, as it came. */
  end(): string
}

/** A head, if any, and an element `Objs`: its children are messages, `<S S="Error">`, or objects with `ToString`. */
function createDocument(): ClixmlDocument {
  /** What came after the last tag. */
  let pending = ''
  let hasTag = false
  let shown = ''
  let depth = 0
  let hasEnded = false
  let stream = ''
  let message: string | undefined
  const parser = new SaxesParser({ xmlns: true })
  parser.on('doctype', () => {
    throw new Error('a document type')
  })
  parser.on('opentag', ({ local, attributes }) => {
    depth += 1
    if (depth > MAX_DEPTH || (depth === 1 && local !== 'Objs')) throw new Error('no messages')
    hasTag = true
    if (depth === 2) stream = (attributes['S']?.value ?? '').toLowerCase()
    if ((depth === 2 && local === 'S') || (depth === 3 && local === 'ToString')) message = ''
  })
  const append = (text: string): void => {
    if (message !== undefined) message += text
  }
  parser.on('text', append)
  parser.on('cdata', append)
  parser.on('closetag', () => {
    hasTag = true
    depth -= 1
    if (message !== undefined) shown += shownMessage(stream, message)
    message = undefined
    hasEnded = depth === 0
  })
  return {
    read(text) {
      shown = ''
      let used = 0
      if (pending === '' && depth === 0 && text.startsWith(HEAD)) {
        pending = HEAD
        used = HEAD.length
      }
      for (const piece of text.slice(used).split(/(?<=>)/)) {
        pending += piece
        used += piece.length
        try {
          if (pending.length > MAX_MESSAGE_CHARACTERS) throw new Error('a long message')
          hasTag = false
          parser.write(piece)
          if (hasTag) pending = ''
        } catch {
          return { shown: shown + pending, rest: text.slice(used), hasEnded: true }
        }
        if (hasEnded) break
      }
      return { shown, rest: text.slice(used), hasEnded }
    },
    end: () => (pending.trim() === '' ? '' : pending),
  }
}

function shownMessage(stream: string, message: string): string {
  if (!LABELS.has(stream)) return ''
  const label = LABELS.get(stream)
  const text = message
    .replace(/_x([0-9A-Fa-f]{4})_/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
    .replaceAll('\r\n', '\n')
  return label === undefined ? text : `${label}${text}\n`
}
