/** PowerShell on a Windows host: the command that runs a text, and values written in its language. */
import { entriesOf, writeJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { compileSecrets } from '../../lib/secrets/index.ts'
import type { RunContext } from '../runner.ts'
import { createClixmlFilter } from './clixml.ts'
import { MAX_LINE_CHARACTERS, type WindowsCommand } from './run.ts'

/** A prompt, such as that for a mandatory parameter, fails instead of waiting for nobody. */
const PROGRAM = 'powershell.exe -NonInteractive -EncodedCommand '

/**
 * Runs the text that is on the standard input: UTF-16 in base64, so that no code page changes it. `$input` are its
 * lines; PowerShell itself reads the stream. As for a text on the command line, the exit code is 1 if the last
 * statement failed; only a text that ends with named blocks (`end { }`) cannot be continued.
 */
const FROM_INPUT = [
  '$svcText = [Text.Encoding]::Unicode.GetString([Convert]::FromBase64String(-join @($input)))',
  'try { $svcBlock = [ScriptBlock]::Create("$svcText`n`nif (-not `$?) { exit 1 }") }',
  'catch { $svcBlock = [ScriptBlock]::Create($svcText) }',
  '. $svcBlock',
].join('\n')

/** @param isSecret other accounts of the host see command lines, so that the text must not be there */
export function powershellCommand(text: string, isSecret: boolean): WindowsCommand {
  const stderrFilter = createClixmlFilter()
  const line = PROGRAM + base64(text)
  if (!isSecret && line.length <= MAX_LINE_CHARACTERS) return { line, stderrFilter }
  return { line: PROGRAM + base64(FROM_INPUT), input: Buffer.from(`${base64(text)}\n`), stderrFilter }
}

function base64(text: string): string {
  return Buffer.from(text, 'utf16le').toString('base64')
}

/** A text that runs a script with the parameters of the action; without any it is the script. */
export function scriptCall(script: string, words: readonly string[]): string {
  return words.length === 0 ? script : `& {\n${script}\n} ${words.join(' ')}`
}

export interface PowershellArguments {
  /** Named ones in declaration order, then positional ones, ascending; written as PowerShell. */
  words: string[]
  /** Whether any of them is a secret. */
  isSecret: boolean
}

const DEFAULT_OPERATOR = '-'
/** What PowerShell reads as the name of a parameter, whatever follows. */
const PARAMETER_NAME = /^[\p{L}_][\p{L}\p{N}_-]*$/u

/** @returns a sentence when a parameter cannot be passed */
export function powershellArguments({
  runnerParameters,
  actionParameters,
  parameterSchemas,
}: Pick<RunContext, 'runnerParameters' | 'actionParameters' | 'parameterSchemas'>):
  PowershellArguments | { problem: string } {
  const given = runnerParameters['kwarg_op']
  const operator = typeof given === 'string' ? given : DEFAULT_OPERATOR
  const named: string[] = []
  const positional: { position: number; value: unknown }[] = []
  let isSecret = false
  for (const [name, value] of Object.entries(actionParameters)) {
    const schema = parameterSchemas[name] ?? {}
    const isAbsent = value === null || value === undefined
    if (!isAbsent && compileSecrets(schema) !== undefined) isSecret = true
    if (schema.position !== undefined) {
      positional.push({ position: Number(schema.position), value })
    } else if (!isAbsent) {
      if (operator === DEFAULT_OPERATOR && !PARAMETER_NAME.test(name)) {
        return {
          problem: `The name of the parameter "${name}" cannot be that of a parameter of PowerShell. Rename it.`,
        }
      }
      named.push(namedWords(operator, name, value))
    }
  }
  positional.sort((a, b) => a.position - b.position)
  // A script has its own defaults for arguments that are not there.
  while (positional.length > 0 && (positional.at(-1)?.value ?? null) === null) positional.pop()
  return { words: [...named, ...positional.map(({ value }) => powershellValue(value))], isSecret }
}

/** Only `-name` names a parameter; with a colon, booleans suit a `[switch]` too. Other operators make plain text. */
function namedWords(operator: string, name: string, value: unknown): string {
  if (operator !== DEFAULT_OPERATOR) return `${powershellText(operator + name)} ${powershellValue(value)}`
  return typeof value === 'boolean' ? `-${name}:${powershellValue(value)}` : `-${name} ${powershellValue(value)}`
}

/** A JSON value as an argument or an expression of PowerShell. */
export function powershellValue(value: unknown): string {
  if (value === null || value === undefined) return '$null'
  if (typeof value === 'boolean') return value ? '$true' : '$false'
  if (typeof value === 'string') return powershellText(value)
  if (Array.isArray(value)) {
    // An array that is the only item would become the array itself.
    const single = value.length === 1 && Array.isArray(value[0]) ? ',' : ''
    return `@(${single}${value.map(powershellValue).join(', ')})`
  }
  if (isObject(value)) {
    const pairs = entriesOf(value).map(([key, item]) => `${powershellText(key)} = ${powershellValue(item)}`)
    return `@{${pairs.join('; ')}}`
  }
  const number = writeJson(value)
  return Number.isFinite(Number(number)) ? number : powershellText(number)
}

/** A literal: nothing in it is expanded. PowerShell takes typographic quotes for quotes too. */
export function powershellText(text: string): string {
  const quoted = `'${text.replace(/['\u2018-\u201b]/g, '$&$&')}'`
  return text.includes('\0') ? `(${quoted.replaceAll('\0', "' + [char]0 + '")})` : quoted
}
