/** Changes options in a configuration file; every other byte stays unchanged. */
import { chmod, readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { writeJson } from '../../lib/json/index.ts'
import { parseIni, parseIniBytes, type IniFile } from '../../lib/text/index.ts'
import {
  describeFileError,
  makeFolder,
  replaceFile,
  replaceSecretFile,
  linkTargetOf,
  type FileOwnership,
} from '../../lib/files/index.ts'
import { hasCode } from '../../lib/process/index.ts'
import { CliFailure } from '../failures.ts'
import { findUnknown, type ConfigFile } from './settings.ts'

/** Option → value; undefined removes the option. */
export type Changes = Readonly<Record<string, string | undefined>>

/**
 * Writes options of one section. A new file gets mode 0600; another one keeps its mode and owner.
 *
 * @param ownFolder the client's own, which is closed to others
 * @throws CliFailure when the file, or a value, does not allow it
 */
export async function changeConfigFile(
  { path, isOurs }: ConfigFile,
  ownFolder: string,
  section: string,
  changes: Changes,
): Promise<void> {
  try {
    // A symbolic link stays; the file it leads to is changed.
    const target = await linkTargetOf(path)
    const { bytes, ownership } = await read(target)
    const { sections } = parseIniBytes(bytes)
    const foreign = isOurs ? [] : findUnknown(path, sections)
    if (foreign.length > 0) {
      throw new CliFailure(
        `SVC_CONFIG_FILE names a file that is not only for the client. Use --config-file.\n${foreign[0] ?? ''}`,
      )
    }
    const text = changeOptions(bytes.toString('utf8'), section, changes)
    await closeFolder(dirname(target), ownFolder)
    if (ownership === undefined) await replaceSecretFile(target, text)
    else await replaceFile(target, Buffer.from(text), ownership, () => Promise.resolve(true))
  } catch (error) {
    if (error instanceof CliFailure) throw error
    throw new CliFailure(`Cannot write the configuration file ${path}: ${describeFileError(path, error)}`)
  }
}

async function read(path: string): Promise<{ bytes: Buffer; ownership: FileOwnership | undefined }> {
  try {
    const stats = await stat(path)
    // Nothing else may be replaced; least of all /dev/null, which stands for no configuration.
    if (!stats.isFile())
      throw new CliFailure(`The configuration file ${path} is not a regular file, so svc cannot write to it.`)
    const { mode, uid, gid } = stats
    return { bytes: await readFile(path), ownership: { mode: mode & 0o7777, uid, gid } }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return { bytes: Buffer.alloc(0), ownership: undefined }
    throw error
  }
}

/**
 * Makes the folder of the file. The client's own folder is closed to others; any other folder stays as its owner set
 * it.
 */
async function closeFolder(folder: string, ownFolder: string): Promise<void> {
  await makeFolder(folder)
  const own = await realpath(ownFolder).catch(() => undefined)
  if ((await realpath(folder)) === own && ((await stat(folder)).mode & 0o077) !== 0) await chmod(folder, 0o700)
}

interface Line {
  /** Without its end. */
  content: string
  end: string
}

/**
 * The text of a file after the changes.
 *
 * @param text without faults
 * @throws CliFailure for a value that such a file cannot hold
 */
export function changeOptions(text: string, section: string, changes: Changes): string {
  const before = parseIni(text).sections
  const lines = splitLines(text)
  const lineEnd = lines.find(({ end }) => end !== '')?.end ?? '\n'
  const missing: [string, string][] = []
  for (const [name, value] of Object.entries(changes)) {
    const found = before.get(section)?.get(name)
    if (found !== undefined) replaceOption(lines, found.line - 1, value)
    else if (value !== undefined) missing.push([name, value])
  }
  const added = missing.map(([name, value]) => `${name} = ${value}`)
  if (added.length > 0) addToSection(lines, section, added, lineEnd)
  const result = lines.map(({ content, end }) => content + end).join('')
  checkResult(parseIni(result), before, section, changes)
  return result
}

function splitLines(text: string): Line[] {
  const parts = text.split(/(\r\n|\n|\r)/)
  const lines: Line[] = []
  for (let index = 0; index < parts.length; index += 2) {
    lines.push({ content: parts[index] ?? '', end: parts[index + 1] ?? '' })
  }
  // After the last line end there is no further line.
  if (lines.at(-1)?.content === '') lines.pop()
  return lines
}

/** Replaces or removes an option with all lines of its value; comments and empty lines between them stay. */
function replaceOption(lines: Line[], at: number, value: string | undefined): void {
  const line = lines[at]
  if (line === undefined) return
  const indent = indentOf(line.content)
  for (let next = at + 1; next < lines.length; next += 1) {
    const content = lines[next]?.content ?? ''
    if (/^\s*(?:[#;]|$)/.test(content)) continue
    if (indentOf(content) <= indent) break
    lines[next] = { content: '', end: '' }
  }
  const head = /^[^=:]*[=:]\s*/.exec(line.content)?.[0] ?? ''
  lines[at] = value === undefined ? { content: '', end: '' } : { content: head + value, end: line.end }
}

function indentOf(content: string): number {
  return content.length - content.trimStart().length
}

function addToSection(lines: Line[], section: string, added: readonly string[], lineEnd: string): void {
  const header = lines.findIndex(({ content }) => /^\uFEFF?\[([^\]]*)\]/.exec(content)?.[1]?.trim() === section)
  if (header === -1) {
    const before = lines.length === 0 ? [`[${section}]`] : ['', `[${section}]`]
    endLast(lines, lineEnd)
    lines.push(...[...before, ...added].map((content) => ({ content, end: lineEnd })))
    return
  }
  if (header === lines.length - 1) endLast(lines, lineEnd)
  // What stands deeper than the line above it would be taken for a part of that.
  const next = lines.slice(header + 1).find(({ content }) => !/^\s*(?:[#;]|$)/.test(content))?.content ?? ''
  const indent = next.startsWith('[') ? '' : next.slice(0, indentOf(next))
  lines.splice(header + 1, 0, ...added.map((content) => ({ content: indent + content, end: lineEnd })))
}

function endLast(lines: Line[], lineEnd: string): void {
  const last = lines.at(-1)
  if (last !== undefined && last.end === '') last.end = lineEnd
}

type Sections = IniFile['sections']

/** Reads back what was written: a value that a file cannot hold, or an odd layout, must not change anything else. */
function checkResult({ sections, problems }: IniFile, before: Sections, section: string, changes: Changes): void {
  for (const [name, value] of Object.entries(changes)) {
    if (sections.get(section)?.get(name)?.text === value) continue
    throw new CliFailure(
      `Cannot write the ${name} to a configuration file: it must be one line without leading or trailing blanks.`,
    )
  }
  const others = (all: Sections): string =>
    writeJson(
      [...all].flatMap(([name, options]) =>
        [...options]
          .filter(([option]) => name !== section || !Object.hasOwn(changes, option))
          .map(([option, { text }]) => [name, option, text]),
      ),
    )
  if (problems.length > 0 || others(sections) !== others(before)) {
    throw new CliFailure(
      `The layout of the configuration file cannot be changed safely. Edit the options of [${section}] by hand.`,
    )
  }
}
