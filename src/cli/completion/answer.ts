/** `svc __complete`: answers the completion scripts. Errors are never shown. */
import type { Command } from 'commander'
import { cliProcess } from '../cli-process.ts'
import { escapeUnprintable } from '../../lib/log/index.ts'
import { displayWidth } from '../output/print.ts'
import { readBashLine, toBashText } from './bash-line.ts'
import { complete, type Candidate, type Completion } from './engine.ts'
import type { OpenLookup } from './lookup.ts'

/** Longer descriptions are cut. */
const MAX_ABOUT = 80
/** Values of COMP_TYPE with which bash shows the candidates, in place of inserting one. */
const listing: ReadonlySet<string> = new Set(['63', '33', '64'])

/**
 * Prints one line that says what may be beside the candidates (`files`), and after them (`part`: no blank); then the
 * candidates, one a line.
 *
 * @param args the shell, and what it knows:
 *   `bash <line up to the cursor> <COMP_WORDBREAKS> <COMP_TYPE> <columns>` is answered as bash inserts it;
 *   `zsh <word>...` and `fish <word>... <last word as typed>`, program first, with whole words and descriptions
 */
export async function answerShell(program: Command, args: readonly string[]): Promise<void> {
  cliProcess().stdout.write(await answer(program, args))
}

async function answer(program: Command, [shell, ...rest]: readonly string[]): Promise<string> {
  if (shell === 'bash') {
    const [text = '', breaks = '', type = '', columns = ''] = rest
    const line = readBashLine(text, breaks)
    const completion = await find(program, line.words)
    const lines = completion.candidates.map((candidate) => toBashText(candidate.text, line))
    const shown = listing.has(type) && lines.length > 1 ? describeEach(lines, completion.candidates, columns) : lines
    return toLines(completion, shown)
  }
  const words = shell === 'fish' ? [...rest.slice(0, -1), readFishToken(rest.at(-1) ?? '')] : rest
  const completion = await find(program, words)
  return toLines(
    completion,
    completion.candidates.map(({ text, about }) => `${text}\t${about}`),
  )
}

/** Quotes of fish are those of bash, as far as they matter here. */
function readFishToken(token: string): string {
  return readBashLine(token, '').words.join(' ')
}

function toLines({ files, isPart }: Completion, lines: readonly string[]): string {
  const head = `words${files ? ' files' : ''}${isPart ? ' part' : ''}`
  return `${[head, ...lines].join('\n')}\n`
}

async function find(program: Command, words: readonly string[]): Promise<Completion> {
  let lookup: OpenLookup | undefined
  try {
    const completion = await complete(program, words, async (flags) => {
      const { openLookup } = await import('./lookup.ts')
      return (lookup = await openLookup(flags, cliProcess().env))
    })
    return { ...completion, candidates: completion.candidates.filter(isTypeable).map(withShortAbout) }
  } catch {
    return { candidates: [], files: false, isPart: false }
  } finally {
    lookup?.close()
  }
}

/** Whether a candidate can stand in the line of a shell as it is, and holds nothing that a terminal would obey. */
function isTypeable({ text }: Candidate): boolean {
  return text !== '' && escapeUnprintable(text) === text
}

/** The first sentence says most. */
function withShortAbout({ text, about }: Candidate): Candidate {
  const [first = ''] = about
    .replace(/\s+/g, ' ')
    .trim()
    .split(/(?<=\.) (?=[A-Z])/)
  return { text, about: shorten(escapeUnprintable(first), MAX_ABOUT) }
}

function shorten(text: string, width: number): string {
  if (displayWidth(text) <= width) return text
  let short = ''
  for (const character of text) {
    if (displayWidth(short) + displayWidth(character) >= width) break
    short += character
  }
  return `${short}…`
}

/** As wide as the terminal at most, so that each has a line of its own and no more. */
function describeEach(lines: readonly string[], candidates: readonly Candidate[], columns: string): string[] {
  const terminal = Number(columns) || 80
  const width = lines.reduce((most, line) => Math.max(most, displayWidth(line)), 0)
  return lines.map((line, index) => {
    const about = candidates[index]?.about ?? ''
    const room = terminal - width - 5
    if (about === '' || room < 10) return line
    return `${line}${' '.repeat(width - displayWidth(line))}  (${shorten(about, room - 2)})`
  })
}
