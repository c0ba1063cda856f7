/** Files of a site that are taken over one by one: role definitions, configurations of packs, password files. */
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { readBoundedFile } from '../lib/files/index.ts'
import { isObject } from '../lib/schema/index.ts'
import { readMetadataFile, shown } from '../lib/text/index.ts'
import type { LoadedRecord, LoadedRecords } from './load-records.ts'
import type { Places } from './places.ts'

const MAX_CONFIG_BYTES = 1_048_576
const MAX_DEFINITION_BYTES = 262_144
const MAX_PASSWORD_BYTES = 8 * 1024 * 1024
const MAX_FILES = 10_000

export interface SiteFile {
  /** The pack, or the user. */
  name: string
  content: Buffer | string
  source: string
}

export interface Site {
  configs: SiteFile[]
  /** User → hash of the password. */
  passwords: SiteFile[]
  rbac: Pick<LoadedRecords['records'], 'role' | 'role_assignment' | 'group_mapping'>
  problems: string[]
}

/** Never throws for what is in the files. */
export async function readSite({ configs, passwordFiles, rbac }: Places): Promise<Site> {
  const site: Site = {
    configs: [],
    passwords: [],
    rbac: { role: [], role_assignment: [], group_mapping: [] },
    problems: [],
  }
  for (const folder of configs) await readConfigs(folder, site)
  for (const path of passwordFiles) await readPasswords(path, site)
  for (const folder of rbac) {
    await readDefinitions(folder, 'roles', 'name', site.rbac.role, site)
    await readDefinitions(folder, 'assignments', 'username', site.rbac.role_assignment, site)
    await readDefinitions(folder, 'mappings', 'group', site.rbac.group_mapping, site)
  }
  return site
}

async function namesIn(folder: string, site: Site): Promise<string[]> {
  try {
    const names = (await readdir(folder)).filter((name) => /^[^.].*\.ya?ml$/.test(name)).toSorted()
    if (names.length > MAX_FILES) site.problems.push(`${folder} has more than ${MAX_FILES} files; the rest is not read`)
    return names.slice(0, MAX_FILES)
  } catch {
    return []
  }
}

async function readConfigs(folder: string, site: Site): Promise<void> {
  for (const name of await namesIn(folder, site)) {
    const source = join(folder, name)
    const file = await readBoundedFile(source, MAX_CONFIG_BYTES)
    if ('problem' in file) site.problems.push(`${source} ${file.problem}`)
    else site.configs.push({ name: basename(name).replace(/\.ya?ml$/, ''), content: file.bytes, source })
  }
}

async function readPasswords(path: string, site: Site): Promise<void> {
  const file = await readBoundedFile(path, MAX_PASSWORD_BYTES)
  if ('problem' in file) {
    site.problems.push(`${path} ${file.problem}`)
    return
  }
  // A later line of the same user counts.
  const hashes = new Map<string, string>()
  for (const line of file.bytes.toString().split(/\r?\n/)) {
    const at = line.indexOf(':')
    if (at > 0 && !line.startsWith('#')) hashes.set(line.slice(0, at), line.slice(at + 1).trim())
  }
  for (const [name, content] of hashes) site.passwords.push({ name, content, source: path })
}

async function readDefinitions(
  folder: string,
  subfolder: string,
  key: string,
  records: LoadedRecord[],
  site: Site,
): Promise<void> {
  for (const name of await namesIn(join(folder, subfolder), site)) {
    const source = join(folder, subfolder, name)
    const read = await readMetadataFile(folder, `${subfolder}/${name}`, MAX_DEFINITION_BYTES)
    if ('problem' in read) {
      site.problems.push(`${source}: ${read.problem.message}`)
      continue
    }
    const { value } = read.document
    const given = isObject(value) ? value[key] : undefined
    records.push(
      isObject(value) && typeof given === 'string' && given !== ''
        ? { source, converted: { name: given, desired: value, fromPack: false } }
        : { source, converted: { name: shown(name), refused: `it has no ${key}` } },
    )
  }
}
