/** Takes over what are files of the site in svc too: packs, configurations, role definitions, the password file. */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { PasswordFileProblem, passwordHashes, setPasswordHashes } from '../../core/password-file.ts'
import { describeFileError, replaceSecretFile } from '../../lib/files/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { describeProblem, listFiles, readMetadataFile, type FileProblem } from '../../lib/text/index.ts'
import {
  PackRefused,
  placePack,
  readTree,
  viewOf,
  type Fields,
  type LoadedRecords,
  type Places,
  type SiteFile,
} from '../../migrate/index.ts'
import { recordIn, textOrEmpty, toList } from '../connection/responses.ts'
import { toYaml } from '../output/yaml.ts'
import { progressText } from '../output/progress.ts'
import type { Session } from '../session.ts'
import { allRecords, REGISTER_MS, toProblem } from './calls.ts'
import { outcomeOf, switchesOf, type Manner } from './import-records.ts'
import { refusalOf, type Row } from './rows.ts'
import { HttpFailure } from '../failures.ts'

/** Kind of the ledger: the pack was registered without a problem. */
const WHOLE_PACK = 'pack.whole'
const MAX_DEFINITION_BYTES = 262_144

type Switches = Awaited<ReturnType<typeof switchesOf>>

/** Where the server has its files. */
export interface ServerPlaces {
  basePath: string
  packs: string
  passwordFile: string
}

/** Registers after the copies, and once more what needs packs that came later. */
export async function importPacks(
  session: Session,
  { packs }: Places,
  loaded: LoadedRecords,
  places: ServerPlaces,
  manner: Manner,
): Promise<{ needEnvironment: string[]; withProblems: string[] }> {
  const paths = (await allRecords(session, '/packs', {})).map(({ ref, path }) => ({ ref, path: textOrEmpty(path) }))
  const included = new Set(
    paths.filter(({ path }) => !path.startsWith(`${places.packs}/`)).map(({ ref }) => textOrEmpty(ref)),
  )
  const registered = new Set(paths.map(({ path }) => path))
  const all = packs.flatMap(({ folder, names }) => names.map((name) => ({ name, from: join(folder, name) })))
  const progress = session.progress('Copying packs')
  const again: { name: string; digest: string; switches: Switches }[] = []
  const needEnvironment: string[] = []
  const withProblems: string[] = []
  const seen = new Map<string, string>()
  for (const [i, { name, from }] of all.entries()) {
    progress.update(`Copying packs: ${progressText(i, all.length)}, now ${name}`)
    if (included.has(name)) {
      manner.add({ kind: 'pack', name, outcome: 'skipped', why: 'svc has this pack itself', source: from })
      continue
    }
    const counts = seen.get(name)
    if (counts !== undefined) {
      manner.add({
        kind: 'pack',
        name,
        outcome: 'refused',
        why: `${counts} has a pack of this name, which counts instead`,
        source: from,
      })
      continue
    }
    seen.set(name, from)
    try {
      const { outcome, problems, digest, switches } = await importPack(
        session,
        name,
        from,
        loaded,
        places,
        registered,
        manner,
      )
      const [first] = problems
      if (problems.some(({ file }) => /^(?:rules|aliases|policies)\//.test(file)))
        again.push({ name, digest, switches })
      if (first !== undefined) withProblems.push(name)
      if (await isFile(join(from, 'requirements.txt'))) needEnvironment.push(name)
      const why =
        outcome === 'conflict'
          ? 'another pack of this name is here, or its files were changed here'
          : first && `${problems.length} ${problems.length === 1 ? 'problem' : 'problems'}; ${describeProblem(first)}`
      manner.add({ kind: 'pack', name, outcome, source: from, ...(why === undefined ? {} : { why }) })
    } catch (error) {
      const why = error instanceof PackRefused ? error.message : refusalOfFile(from, error)
      manner.add({ kind: 'pack', name, outcome: 'refused', why, source: from })
    }
    if (!manner.dryRun) await manner.ledger.save()
  }
  for (const { name, digest, switches } of again) {
    progress.update(`Registering packs again: ${name}`)
    if ((await register(session, join(places.packs, name), switches)).length > 0) continue
    withProblems.splice(withProblems.indexOf(name), 1)
    manner.ledger.note(WHOLE_PACK, name, digest)
  }
  if (!manner.dryRun) await manner.ledger.save()
  progress.stop()
  return { needEnvironment, withProblems }
}

async function importPack(
  session: Session,
  name: string,
  from: string,
  loaded: LoadedRecords,
  places: ServerPlaces,
  /** Folders of packs that the server has. */
  registered: ReadonlySet<string>,
  manner: Manner,
): Promise<{ outcome: ReturnType<typeof outcomeOf>; problems: FileProblem[]; digest: string; switches: Switches }> {
  const { ledger, dryRun, onConflict } = manner
  const tree = await readTree(from)
  const { digest } = tree
  const place = join(places.packs, name)
  const there = (await isUntouchedDefault(place, name)) ? undefined : await digestOf(place)
  const outcome = outcomeOf(ledger.decide('pack', name, digest, there), { onConflict })
  if (outcome === 'conflict') return { outcome, problems: [], digest, switches: {} }
  if (dryRun) {
    const switches = await switchesOf(session, loaded, name, registered.has(place), manner)
    return { outcome, problems: [], digest, switches }
  }
  if (outcome !== 'unchanged') await placePack(tree, places.packs, name)
  ledger.note('pack', name, digest)
  const isDone = outcome === 'unchanged' && registered.has(place) && ledger.isNoted(WHOLE_PACK, name, digest)
  if (isDone) return { outcome, problems: [], digest, switches: {} }
  const switches = await switchesOf(session, loaded, name, registered.has(place), manner)
  const problems = await register(session, place, switches)
  if (problems.length === 0) ledger.note(WHOLE_PACK, name, digest)
  return { outcome, problems, digest, switches }
}

async function digestOf(place: string): Promise<string | undefined> {
  if (!(await isFolder(place))) return undefined
  return (await readTree(place)).digest
}

/** svc makes this pack itself, so that content without a pack has one. */
async function isUntouchedDefault(place: string, name: string): Promise<boolean> {
  if (name !== 'default' || !(await isFolder(place))) return false
  const { entries } = await readTree(place)
  return entries.every(({ kind, path }) => kind === 'folder' || path === 'pack.yaml')
}

/** Nothing that is disabled there or here is enabled for a moment. */
async function register(session: Session, place: string, switches: Switches): Promise<FileProblem[]> {
  const body = { packs: [place], fail_on_failure: false, keep_enabled: true, enabled: switches }
  try {
    const answer = recordIn(await session.client.call('POST', '/packs/register', { body, timeoutMs: REGISTER_MS }))
    return toList(answer['problems']).map(toProblem)
  } catch (error) {
    return [{ file: '.', message: refusalOf(error) }]
  }
}

/** The files themselves, with their comments. */
export async function importConfigs(
  session: Session,
  configs: readonly SiteFile[],
  places: ServerPlaces,
  manner: Manner,
): Promise<void> {
  const folder = join(places.basePath, 'configs')
  for (const { name, content, source } of configs) {
    const path = join(folder, `${name}.yaml`)
    const there = await readFile(path).catch(() => undefined)
    const decision = manner.ledger.decide('config_file', name, content.toString('latin1'), there?.toString('latin1'))
    const outcome = outcomeOf(decision, manner)
    let why: string | undefined
    if (!manner.dryRun && outcome !== 'conflict') {
      if (outcome !== 'unchanged') await replaceSecretFile(path, content)
      manner.ledger.note('config_file', name, content.toString('latin1'))
      why = await registerConfig(session, join(places.packs, name))
    }
    if (outcome === 'conflict') why = 'another configuration of this pack is here'
    manner.add({ kind: 'config', name, outcome, source, ...(why === undefined ? {} : { why }) })
  }
  if (!manner.dryRun) await manner.ledger.save()
}

/** @returns why the configuration is not used */
async function registerConfig(session: Session, place: string): Promise<string | undefined> {
  if (!(await isFolder(place))) return 'its pack is not on the server'
  const body = { packs: [place], types: ['config'], fail_on_failure: false }
  try {
    const answer = recordIn(await session.client.call('POST', '/packs/register', { body, timeoutMs: REGISTER_MS }))
    const [first] = toList(answer['problems']).map(toProblem)
    return first === undefined ? undefined : describeProblem(first)
  } catch (error) {
    return refusalOf(error)
  }
}

/** Hashes that svc can verify. */
const knownHash = /^(?:\$(?:apr1|1|5|6|2[aby]|argon2id?)\$|\{SHA\})/

/** @returns why the password file is left as it is */
export async function importPasswords(
  passwords: readonly SiteFile[],
  places: ServerPlaces,
  manner: Manner,
): Promise<{ problem?: string }> {
  if (passwords.length === 0) return {}
  try {
    await mergePasswords(passwords, places, manner)
    return {}
  } catch (error) {
    if (error instanceof PasswordFileProblem) return { problem: `${error.message} No password was imported.` }
    throw error
  }
}

async function mergePasswords(
  passwords: readonly SiteFile[],
  { passwordFile }: ServerPlaces,
  manner: Manner,
): Promise<void> {
  const here = await passwordHashes(passwordFile)
  /** Of every password that is then here, and of those that are to be changed. */
  const [taken, changes] = [new Map<string, string>(), new Map<string, string>()]
  const rows: Row[] = []
  for (const { name, content, source } of passwords) {
    const hash = content.toString()
    if (!knownHash.test(hash)) {
      const why = 'svc does not verify hashes of this form; set the password with svc user passwd'
      rows.push({ kind: 'password', name, outcome: 'refused', why, source })
      continue
    }
    const outcome = outcomeOf(manner.ledger.decide('password', name, hash, here.get(name)), manner)
    if (outcome !== 'conflict') {
      taken.set(name, hash)
      if (outcome !== 'unchanged') changes.set(name, hash)
    }
    const why = outcome === 'conflict' ? { why: 'the user has another password here' } : {}
    rows.push({ kind: 'password', name, outcome, source, ...why })
  }
  if (!manner.dryRun && changes.size > 0) await setPasswordHashes(passwordFile, changes)
  for (const row of rows) manner.add(row)
  if (manner.dryRun) return
  for (const [name, hash] of taken) manner.ledger.note('password', name, hash)
  await manner.ledger.save()
}

const folderOf = { role: 'roles', role_assignment: 'assignments', group_mapping: 'mappings' } as const
type DefinitionKind = keyof typeof folderOf
const keyOf = { role: 'name', role_assignment: 'username', group_mapping: 'group' } as const

/** @returns what is to be known about their effect. Role definitions are files: those of one name replace each other, whatever their files are called. */
export async function importRoles(
  session: Session,
  records: Pick<LoadedRecords['records'], DefinitionKind>,
  { basePath }: ServerPlaces,
  manner: Manner,
): Promise<{ note?: string; problem?: string }> {
  const root = join(basePath, 'rbac')
  let isChanged = false
  for (const kind of ['role', 'role_assignment', 'group_mapping'] as const) {
    const here = await readHere(root, kind)
    for (const { converted, source } of records[kind]) {
      const { name } = converted
      if (!('desired' in converted)) {
        const refused = 'refused' in converted
        const why = refused ? converted.refused : converted.skipped
        manner.add({ kind, name, outcome: refused ? 'refused' : 'skipped', why, source })
        continue
      }
      const current = here.get(name)
      const view = viewOf(kind, converted.desired)
      const decision = manner.ledger.decide(
        kind,
        name,
        view,
        current === undefined ? undefined : viewOf(kind, current.value),
      )
      const outcome = outcomeOf(decision, manner)
      if (!manner.dryRun && outcome !== 'conflict') {
        if (outcome !== 'unchanged') {
          const file = current?.file ?? join(root, folderOf[kind], `${fileNameOf(name)}.yaml`)
          await replaceSecretFile(file, toYaml(view))
          isChanged = true
        }
        manner.ledger.note(kind, name, view)
      }
      const why = outcome === 'conflict' ? { why: 'another definition of this name is here' } : {}
      manner.add({ kind, name, outcome, source, ...why })
    }
  }
  if (manner.dryRun) return {}
  await manner.ledger.save()
  return isChanged ? applyRoles(session) : {}
}

async function applyRoles(session: Session): Promise<{ note?: string; problem?: string }> {
  try {
    await session.client.call('POST', '/rbac/definitions/apply', { body: {} })
    return {}
  } catch (error) {
    if (error instanceof HttpFailure && error.code === 'ACCESS_CONTROL_OFF')
      return { note: 'The role definitions take effect when rbac.enable is True.' }
    return { problem: `The role definitions are in place, but not applied: ${refusalOf(error)}` }
  }
}

/** Letters that every file system takes; different names have different files. */
function fileNameOf(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_@.-]|^\./g, (character) => `%${character.codePointAt(0)?.toString(16) ?? ''}`)
}

async function readHere(root: string, kind: DefinitionKind): Promise<Map<string, { file: string; value: Fields }>> {
  const found = new Map<string, { file: string; value: Fields }>()
  for (const name of (await listFiles(root, folderOf[kind], [])) ?? []) {
    if (!/\.ya?ml$/.test(name)) continue
    const read = await readMetadataFile(root, `${folderOf[kind]}/${name}`, MAX_DEFINITION_BYTES)
    const value = 'document' in read ? read.document.value : undefined
    const given = isObject(value) ? value[keyOf[kind]] : undefined
    if (isObject(value) && typeof given === 'string')
      found.set(given, { file: join(root, folderOf[kind], name), value })
  }
  return found
}

function refusalOfFile(path: string, error: unknown): string {
  if (error instanceof Error && 'code' in error) return describeFileError(path, error)
  throw error
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  )
