/**
 * Plays the `console` blocks of a document: runs each command after `$ ` in bash and compares its output with the lines
 * that follow. Folder, PATH and the ids that appear in the text carry over from one command to the next.
 */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ConsoleStep {
  command: string
  /** As the document has it: `…` stands for any text in a line, a line of its own for any number of lines. */
  expected: string
}

export interface ConsoleOptions {
  /** Where the first command runs. The session keeps files of its own there. */
  folder: string
  env: Record<string, string>
  /** Texts of the document that differ in the test, such as addresses. */
  replacements?: Record<string, string>
}

export interface ConsoleSession {
  /** Runs the step. Both texts are equal if the command printed what the document says. */
  play(step: ConsoleStep): Promise<{ printed: string; expected: string }>
}

/** Commands of a `sh` block, without comments: they print nothing. */
export function commandsOf(block: string): ConsoleStep[] {
  const lines = block.trimEnd().split('\n')
  return lines.map((line) => ({ command: line.replace(/\s+#.*/, ''), expected: '' }))
}

/** Commands of one block, each with its continuation lines and here-document. */
export function stepsOf(block: string): ConsoleStep[] {
  const steps: ConsoleStep[] = []
  const lines = block.replace(/\n$/, '').split('\n')
  for (let index = 0; index < lines.length; index += 1) {
    let line = lines[index] ?? ''
    const step = steps.at(-1)
    if (!line.startsWith('$ ')) {
      if (step === undefined) throw new Error(`a console block begins with output: ${line}`)
      step.expected += `${line}\n`
      continue
    }
    const command = [line.slice(2)]
    const delimiter = /<<'?(\w+)'?/.exec(line)?.[1]
    while (index + 1 < lines.length && (line.endsWith('\\') || (delimiter !== undefined && line !== delimiter))) {
      index += 1
      line = lines[index] ?? ''
      command.push(line)
    }
    steps.push({ command: command.join('\n'), expected: '' })
  }
  return steps
}

export function openConsole({ folder, env, replacements = {} }: ConsoleOptions): ConsoleSession {
  const ids = new Map<string, string>()
  const scriptFile = join(folder, '.console-step')
  const stateFile = join(folder, '.console-state')
  let state: Record<string, string> = { PWD: folder, OLDPWD: folder, ...env }

  const actual = (text: string): string =>
    [...ids, ...Object.entries(replacements)].reduce((result, [from, to]) => result.replaceAll(from, to), text)

  return {
    async play({ command, expected }) {
      // From a file: `pgrep -f` must not find the words of the command itself.
      writeFileSync(
        scriptFile,
        `exec 2>&1\n${actual(command)}\nprintf '%s\\n' "$PWD" "$OLDPWD" "$PATH" > '${stateFile}'\n`,
      )
      const output = await new Promise<string>((resolve) => {
        const options = { cwd: state['PWD'], env: state, timeout: 60_000 }
        execFile('/bin/bash', [scriptFile], options, (_error, stdout) => resolve(stdout)).stdin?.end()
      })
      const [PWD = '', OLDPWD = '', PATH = ''] = readFileSync(stateFile, 'utf8').split('\n')
      state = { ...state, PWD, OLDPWD, PATH }
      const { pattern, names } = patternOf(actual(expected))
      const printed = `${output.trimEnd()}\n`
      const match = pattern.exec(printed)
      if (match === null) return { printed, expected }
      names.forEach((name, index) => ids.set(name, match[index + 1] ?? ''))
      return { printed, expected: printed }
    },
  }
}

/** What may differ from run to run; the first group of an id is bound to what stands in its place. */
function patternOf(expected: string): { pattern: RegExp; names: string[] } {
  const names: string[] = []
  const source = expected
    .trimEnd()
    .split('\n')
    .map((line) => (line === '…' ? '(?:.*\\n)*' : `${lineSource(line, names)}\\n`))
    .join('')
  return { pattern: new RegExp(`^${source}$`), names }
}

function lineSource(line: string, names: string[]): string {
  const variable =
    /(?<id>\b[0-9a-f]{24}\b)|(?<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|(?<date>[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} UTC)|(?<elapsed>\d+s elapsed)|(?<any>…)/g
  let source = ''
  let end = 0
  for (const match of line.matchAll(variable)) {
    source += escaped(line.slice(end, match.index))
    end = match.index + match[0].length
    const { id, uuid, date, elapsed } = match.groups ?? {}
    if (id !== undefined) {
      const known = names.indexOf(id)
      source += known === -1 ? '([0-9a-f]{24})' : `\\${known + 1}`
      if (known === -1) names.push(id)
    } else if (uuid !== undefined) source += '[0-9a-f-]{36}'
    else if (date !== undefined) source += '[A-Z][a-z]{2}, \\d\\d [A-Z][a-z]{2} \\d{4} [\\d:]{8} UTC'
    else if (elapsed !== undefined) source += '\\d+s elapsed'
    else source += '.*'
  }
  return source + escaped(line.slice(end))
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
