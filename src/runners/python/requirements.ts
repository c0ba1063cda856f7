/** Which packages a `requirements.txt` names, and which are installed, as far as names of files tell. */
import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join, normalize } from 'node:path'

const MAX_FILES = 20
const MAX_FILE_BYTES = 1024 * 1024

/** A file with requirements; null: there is no such file. */
export type RequirementsFile = readonly [path: string, text: string | null]

/**
 * `requirements.txt` and the files of the pack that it includes.
 *
 * @param text of `requirements.txt`
 */
export async function withIncluded(text: string, packFolder: string): Promise<RequirementsFile[]> {
  const files: RequirementsFile[] = [['requirements.txt', text]]
  for (let index = 0; index < files.length; index++) {
    for (const line of linesOf(files[index]?.[1] ?? '')) {
      const [, included] = /^(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)/.exec(line) ?? []
      const path = included === undefined ? '..' : normalize(included)
      if (files.length >= MAX_FILES || path.startsWith('..') || path.startsWith('/')) continue
      if (files.some(([known]) => known === path)) continue
      files.push([path, await readText(join(packFolder, path))])
    }
  }
  return files
}

/**
 * Packages that must be there, as `normalName` spells them. Leaves out what has no name (an address, a folder) and what
 * depends on more than the version of Python.
 *
 * @param version of Python, as in `3.11.7`
 */
export function requiredNames(files: readonly RequirementsFile[], version: string): string[] {
  const constraints = new Set(files.flatMap(([, text]) => linesOf(text ?? '').flatMap((line) => constraintsIn(line))))
  const lines = files.flatMap(([path, text]) => (constraints.has(path) ? [] : linesOf(text ?? '')))
  const names = lines.map((line) => nameIn(line, version)).filter((name) => name !== undefined)
  return [...new Set(names.map(normalName))]
}

/** Files that only limit versions. */
function constraintsIn(line: string): string[] {
  const [, path] = /^(?:-c|--constraint)[\s=]*(\S+)/.exec(line) ?? []
  return path === undefined ? [] : [normalize(path)]
}

function linesOf(text: string): string[] {
  return text
    .replace(/\\\r?\n/g, ' ')
    .split(/\r?\n/)
    .map((line) => line.replace(/(?:^|\s)#.*$/, '').trim())
    .filter((line) => line !== '')
}

function nameIn(line: string, version: string): string | undefined {
  const [requirement = '', ...markers] = line.split(';')
  if (!markers.every((marker) => isTrue(marker, version))) return undefined
  const [, egg] = /[#&]egg=([A-Za-z0-9._-]+)/.exec(line) ?? []
  if (egg !== undefined) return egg
  if (requirement.startsWith('-')) return undefined
  const [, wheel] =
    /(?:^|\/)([A-Za-z0-9._]+)-[^/-]+(?:-[^/]*)?-[^/-]+-[^/-]+-[^/-]+\.whl$/.exec(requirement.trim()) ?? []
  if (wheel !== undefined) return wheel
  const [, name] = /^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:$|[=<>!~(@]|--)/.exec(requirement.trim()) ?? []
  return name
}

/** Only for what compares the version of Python; all else counts as untrue. */
function isTrue(marker: string, version: string): boolean {
  const [, operator = '', wanted = ''] =
    /^\s*python_version\s*(<=|>=|<|>|==|!=)\s*['"](\d+(?:\.\d+)?)['"]\s*$/.exec(marker) ?? []
  if (operator === '') return false
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split('.').map(Number)
  const order = major === wantedMajor ? minor - wantedMinor : major - wantedMajor
  return order === 0
    ? operator.includes('=') && operator !== '!='
    : operator.startsWith(order < 0 ? '<' : '>') || operator === '!='
}

/** Null when it is no file that can be read; pip says why. */
async function readText(path: string): Promise<string | null> {
  try {
    // A pipe would keep the reader waiting for ever.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const { size } = await file.stat().then((stats) => (stats.isFile() ? stats : { size: Infinity }))
      return size > MAX_FILE_BYTES ? null : await file.readFile('utf8')
    } finally {
      await file.close()
    }
  } catch {
    return null
  }
}

/** `Foo.Bar_baz` and `foo-bar-baz` are one name. */
const normalName = (name: string): string => name.toLowerCase().replace(/[-_.]+/g, '-')

/**
 * Packages that the environment has, as `normalName` spells them; with those of the machine where it shares them, or
 * where there is no environment yet.
 *
 * @param systemFolders folders of packages of the machine
 */
export async function installedNames(path: string, systemFolders: () => Promise<string[]>): Promise<Set<string>> {
  const config = await readText(join(path, 'pyvenv.cfg'))
  const isShared = config === null || /^include-system-site-packages\s*=\s*true/im.test(config)
  const versions = await namesIn(join(path, 'lib'))
  const own = versions.map((version) => join(path, 'lib', version, 'site-packages'))
  const installed = new Set<string>()
  for (const folder of [...own, ...(isShared ? await systemFolders() : [])]) {
    for (const entry of await namesIn(folder)) {
      const [, name] = /^([^-]+)(?:-.*)?\.(?:dist-info|egg-info|egg-link|egg)$/.exec(entry) ?? []
      if (name !== undefined) installed.add(normalName(name))
    }
  }
  return installed
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch {
    return []
  }
}
