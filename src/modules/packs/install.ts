/**
 * Installing and removing packs (contract 02, 2.8).
 *
 * What is fetched, read and checked lies in a folder of its own beside the packs until all of it is right; then renaming
 * puts it in the place of what was there. Whenever the program dies, the next start finds the old pack or the new one.
 */
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  packNotInstalled,
  packRefused,
  packReserved,
  packsFolderUnusable,
  packSourceUnusable,
  parametersInvalid,
} from '../../core/errors.ts'
import { reasonOfFileError, syncFolder, syncTree } from '../../lib/files/index.ts'
import { hasCode } from '../../lib/process/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { describeProblem, readMetadataFile, type FileProblem, shown } from '../../lib/text/index.ts'
import type { PackManager, PackOutcome, PackWork } from '../../runners/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { versionMatches } from '../../lib/template/index.ts'
import { fetchPack } from './fetch.ts'
import type { Catalogue } from './catalogue.ts'
import { readPack, type PackManifest } from './read.ts'
import type { VirtualenvBuilder } from './environments.ts'
import { allKinds, separate, type PackRegistration } from './register.ts'
import type { PackService } from './service.ts'
import { createLocks } from './locks.ts'
import { exists, parseSource, type FindRepository, type PackSource } from './sources.ts'
import type { PackVersions } from './versions.ts'

/** Packs that cannot be installed or removed: svc includes them, or the API fills them. */
const reservedRefs: ReadonlySet<string> = new Set(['core', 'packs', 'default', '_global'])
/** In the folder of the packs; its name is no valid pack reference. */
const STAGING = '.staging'
const MAX_SOURCES = 100
const MAX_PROBLEMS_TOLD = 20

/** What the installer needs of the rest of the module. */
export interface InstallerDeps {
  /** `content.system_packs_base_path` */
  packsFolder: string
  /** Name → folder of what can be installed by its name. */
  shipped: ReadonlyMap<string, string>
  catalogue: Catalogue
  /** Of the program. */
  version: string
  /** A pack that is registered; undefined when there is none. */
  find(ref: string): { version: string; path: string } | undefined
  service: Pick<PackService, 'register' | 'registerNamed' | 'unregister'>
  virtualenvs: VirtualenvBuilder
  versions: Pick<PackVersions, 'installed' | 'removed'>
  log: Log
}

export interface Installer extends PackManager {
  /** Puts back or clears away what a program that died has left; before packs are registered. */
  recover(): Promise<void>
}

/** Fetched and read, not in its place yet. */
interface Candidate {
  source: PackSource
  ref: string
  manifest: PackManifest
  folder: string
}

/** What clients of StackStorm read of these results: a sentence that names the packs, and lists. */
function summary(done: string, refs: readonly string[], warnings: readonly string[] = []): Record<string, unknown> {
  const message = `${done} ${refs.length === 1 ? 'the pack' : 'the packs'} ${refs.join(', ')}.`
  // A conflict of dependencies refuses the whole installation, so a result has none.
  return { result: message, output: { packs_list: refs, message, conflict_list: [], warning_list: warnings } }
}

/** The problems in the content of the packs, which are installed nevertheless. */
function warningsIn(results: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(results).flatMap(([ref, result]) => {
    const problems = isObject(result) ? result['problems'] : undefined
    return Array.isArray(problems) ? problems.map((problem) => `${ref}: ${String(problem)}`) : []
  })
}

export function createInstaller(deps: InstallerDeps): Installer {
  const { packsFolder, virtualenvs, log } = deps
  const staging = join(packsFolder, STAGING)
  const locks = createLocks()

  const findRepository: FindRepository = async (ref) => {
    if (!deps.catalogue.isConfigured) return { why: 'no index is configured (content.index_url)' }
    const { packs, localRefs, status } = await deps.catalogue.read()
    const pack = packs.get(ref)
    if (typeof pack?.['repo_url'] === 'string') return { url: pack['repo_url'], mayBeLocal: localRefs.has(ref) }
    if (pack !== undefined) return { why: 'its index does not say where its repository is (repo_url)' }
    const failed = status.filter(({ error }) => error !== null).map(({ url, message }) => `${url}: ${message}`)
    return { why: ['no index has it', ...failed].join('; ').replace(/\.$/, '') }
  }

  const parse = (text: string): Promise<PackSource> => parseSource(text, deps.shipped, findRepository)

  /**
   * Fetches dependencies that are neither installed nor among the candidates, and that an index has. The others are
   * named when the candidates are checked.
   */
  async function addDependencies(candidates: Candidate[], job: string, work: PackWork): Promise<void> {
    if (!deps.catalogue.isConfigured) return
    // Grows while it is read: dependencies have dependencies.
    for (const { manifest } of candidates) {
      for (const dependency of dependenciesOf(manifest)) {
        const [name, wanted] = parseDependency(dependency)
        const isThere = deps.find(name) !== undefined || candidates.some(({ ref }) => ref === name)
        if (isThere || candidates.length >= MAX_SOURCES || (await deps.catalogue.find(name)) === undefined) continue
        await work.say(`Installing ${shown(name)}, on which ${shown(manifest.name)} depends`)
        const source = await parse(wanted === undefined ? name : `${name}=${wanted}`)
        candidates.push(await fetchCandidate(source, join(job, String(candidates.length)), work))
      }
    }
  }

  async function install(parameters: Readonly<Record<string, unknown>>, work: PackWork): Promise<PackOutcome> {
    const texts = textsOf(parameters['packs'])
    const isForced = parameters['force'] === true
    const sources: PackSource[] = []
    for (const text of texts) {
      const name = text.replace(/=.*/s, '')
      if (reservedRefs.has(name)) throw packReserved(name)
      sources.push(await parse(text))
    }
    const job = join(staging, `job-${work.executionId}`)
    await makeStaging()
    await mkdir(job, { mode: 0o700 })
    const results: Record<string, unknown> = {}
    try {
      const candidates: Candidate[] = []
      for (const [index, source] of sources.entries()) {
        candidates.push(await fetchCandidate(source, join(job, String(index)), work))
      }
      const skipsDependencies = parameters['skip_dependencies'] === true
      if (!skipsDependencies) await addDependencies(candidates, job, work)
      checkTogether(candidates, { isForced, skipsDependencies })
      for (const candidate of inOrder(candidates)) {
        results[candidate.ref] = await locks.hold(candidate.ref, work.signal, () =>
          putInPlace(candidate, isForced, work),
        )
      }
      return {
        succeeded: true,
        result: { packs: results, ...summary('Installed', Object.keys(results), warningsIn(results)) },
      }
    } finally {
      await clear(job)
    }
  }

  /** Not the directory of packs, which has disappeared if it is missing. @throws PACKS_FOLDER_UNUSABLE */
  async function makeStaging(): Promise<void> {
    try {
      await mkdir(staging, { mode: 0o700 })
    } catch (error) {
      if (!hasCode(error, 'EEXIST'))
        throw packsFolderUnusable(hasCode(error, 'ENOENT') ? 'it does not exist' : reasonOfFileError(error), error)
    }
  }

  async function fetchCandidate(source: PackSource, scratch: string, work: PackWork): Promise<Candidate> {
    await mkdir(scratch)
    const tree = join(scratch, 'tree')
    await fetchPack(source, scratch, tree, work)
    const ref = await refIn(tree, source)
    if (reservedRefs.has(ref)) throw packReserved(ref)
    // Named after the pack, as it will be in its place: the name of its folder means something to who reads it.
    const named = join(scratch, 'pack')
    await mkdir(named)
    const folder = join(named, ref)
    await rename(tree, folder)
    const content = await readPack(folder)
    if (!('ref' in content)) throw packSourceUnusable(source.text, describe(separate(content.problems).problems))
    const { manifest } = content
    const version = source.kind === 'git' ? undefined : source.version
    if (version !== undefined && manifest.version !== version.replace(/^v/, '')) {
      throw packSourceUnusable(source.text, `the version of the pack that is there is ${manifest.version}`)
    }
    return { source, ref: content.ref, manifest, folder }
  }

  function checkTogether(
    candidates: readonly Candidate[],
    { isForced, skipsDependencies }: { isForced: boolean; skipsDependencies: boolean },
  ): void {
    const versions = new Map<string, string>()
    for (const { ref, manifest } of candidates) {
      if (versions.has(ref)) throw packRefused(ref, 'it is named twice')
      versions.set(ref, manifest.version)
    }
    for (const { ref, manifest } of candidates) {
      if (!isForced) checkPlatform(ref, manifest, deps.version)
      if (skipsDependencies) continue
      for (const dependency of dependenciesOf(manifest)) {
        const [name, wanted] = parseDependency(dependency)
        const version = versions.get(name) ?? deps.find(name)?.version
        if (version === undefined) {
          throw packRefused(
            ref,
            `it needs the pack "${shown(name)}", which is not installed; install it first, or both in one call, or skip the dependencies`,
          )
        }
        if (wanted !== undefined && wanted !== version) {
          throw packRefused(
            ref,
            `it needs version ${shown(wanted)} of the pack "${shown(name)}", and ${version} is installed; install that version, or skip the dependencies`,
          )
        }
      }
    }
  }

  async function putInPlace(candidate: Candidate, isForced: boolean, work: PackWork): Promise<unknown> {
    const { ref, manifest, folder, source } = candidate
    const before = deps.find(ref)
    const target = join(packsFolder, ref)
    if (before !== undefined && before.path !== target) {
      throw packRefused(ref, 'a pack of this name is in another folder of packs, which is not changed from here')
    }
    await makeEnvironment(ref, folder, false, work)

    await syncTree(folder)

    // From here on nothing waits for anybody, and nothing is given up half-way.
    const old = join(staging, `old-${ref}`)
    await clear(old)
    const hadFolder = await moved(target, old)
    await rename(folder, target)
    // Before the record says that it is there.
    await syncFolder(packsFolder)
    let registration: PackRegistration
    try {
      registration = await deps.service.register(target)
      if (registration.problems.length > 0 && (!isForced || registration.ref === undefined)) {
        throw packRefused(
          ref,
          `${describe(registration.problems).replace(/\.$/, '')}; with "force" what can be used is installed`,
        )
      }
    } catch (error) {
      await putBack(ref, target, hadFolder ? old : undefined)
      throw error
    }
    await clear(old)
    await deps.versions.installed(ref, await repositoryOf(source))

    const { registered, problems, warnings } = registration
    for (const each of [...problems, ...warnings]) await work.warn(`${ref}: ${describeProblem(each)}`)
    const change = before === undefined ? 'Installed' : `Replaced ${before.version} by`
    await work.say(`${change} ${ref} ${manifest.version}: ${countsOf(registered)}`)
    log.audit('pack.installed', `Pack "${ref}" installed.`, {
      pack: ref,
      version: manifest.version,
      ...(before === undefined ? {} : { previous_version: before.version }),
      execution_id: work.executionId,
    })
    return {
      version: manifest.version,
      ...(before === undefined ? {} : { previous_version: before.version }),
      source: source.text,
      registered,
      problems: problems.map(describeProblem),
      ...(warnings.length === 0 ? {} : { warnings: warnings.map(describeProblem) }),
    }
  }

  /** @returns whether the pack has one */
  async function makeEnvironment(ref: string, folder: string, isNew: boolean, work: PackWork): Promise<boolean> {
    // A pack without requirements needs none, and no Python on this machine.
    if (!(await exists(join(folder, 'requirements.txt')))) return false
    const outcome = await (isNew ? virtualenvs.recreate(ref, folder, work) : virtualenvs.ensure(ref, folder, work))
    work.signal.throwIfAborted()
    if ('problem' in outcome) throw packRefused(ref, `its Python environment cannot be made: ${outcome.problem}`)
    return true
  }

  async function putBack(ref: string, target: string, old: string | undefined): Promise<void> {
    await clear(target)
    if (old === undefined) {
      await deps.service.unregister(ref)
      return
    }
    await rename(old, target)
    await deps.service.register(target)
  }

  async function uninstall(parameters: Readonly<Record<string, unknown>>, work: PackWork): Promise<PackOutcome> {
    const refs = textsOf(parameters['packs'])
    for (const ref of refs) {
      if (reservedRefs.has(ref)) throw packReserved(ref)
      const found = deps.find(ref)
      if (found === undefined) throw packNotInstalled(ref)
      if (found.path !== join(packsFolder, ref)) {
        throw packRefused(ref, 'it is in another folder of packs, which is not changed from here; remove it there')
      }
    }
    for (const ref of refs) {
      await locks.hold(ref, work.signal, async () => {
        const gone = join(staging, `gone-${ref}`)
        await makeStaging()
        await clear(gone)
        await moved(join(packsFolder, ref), gone)
        // A folder that comes back would be registered again.
        await syncFolder(packsFolder)
        for (const problem of await deps.service.unregister(ref)) await work.warn(`${ref}: ${describeProblem(problem)}`)
        await clear(gone)
        await virtualenvs.remove(ref)
        await deps.versions.removed(ref)
        await work.say(`Removed ${ref}; its configuration, if it has one, stays in configs/${ref}.yaml`)
        log.audit('pack.removed', `Pack "${ref}" removed.`, { pack: ref, execution_id: work.executionId })
      })
    }
    return { succeeded: true, result: { packs: refs, ...summary('Removed', refs) } }
  }

  async function register(parameters: Readonly<Record<string, unknown>>, work: PackWork): Promise<PackOutcome> {
    const { packs, types } = parameters
    const kinds = isListOfTexts(types) ? new Set([...allKinds].filter((kind) => types.includes(kind))) : allKinds
    const { registered, problems, warnings } = await deps.service.registerNamed(
      isListOfTexts(packs) ? packs : undefined,
      isListOfTexts(types) && types.includes('all') ? allKinds : kinds,
    )
    log.audit('pack.registered', 'Packs registered.', {
      packs: isListOfTexts(packs) ? packs : 'all',
      problems: problems.length,
      execution_id: work.executionId,
    })
    for (const each of [...problems, ...warnings]) await work.warn(`${each.pack}: ${describeProblem(each)}`)
    await work.say(`Registered ${countsOf(registered)}`)
    return { succeeded: problems.length === 0, result: { registered, problems: problems.map(describeProblem) } }
  }

  async function setUp(parameters: Readonly<Record<string, unknown>>, work: PackWork): Promise<PackOutcome> {
    const refs = textsOf(parameters['packs'])
    for (const ref of refs) {
      const found = deps.find(ref)
      if (found === undefined) throw packNotInstalled(ref)
      const isMade = await locks.hold(ref, work.signal, () =>
        makeEnvironment(ref, found.path, parameters['update'] === true, work),
      )
      await work.say(
        isMade
          ? `The Python environment of ${ref} is ready`
          : `${ref} has no requirements.txt and needs no environment`,
      )
    }
    return { succeeded: true, result: { packs: refs, ...summary('Set up the Python environments of', refs) } }
  }

  const operations = { install, uninstall, register, setup_virtualenv: setUp }

  return {
    perform: (operation, parameters, work) => operations[operation](parameters, work),
    async recover() {
      const left = await readdir(staging).catch(() => [])
      for (const name of left) {
        const [, ref] = /^old-([a-z0-9_]+)$/.exec(name) ?? []
        if (ref === undefined) continue
        const target = join(packsFolder, ref)
        if ((await stat(target).catch(() => undefined)) === undefined) await rename(join(staging, name), target)
      }
      await clear(staging)
    },
  }
}

/** Its address; undefined: the pack comes from files alone. */
async function repositoryOf(source: PackSource): Promise<string | undefined> {
  if (source.kind === 'git') return source.url
  const isClone = source.kind === 'folder' && (await exists(join(source.path, '.git')))
  return isClone ? `file://${encodeURI(source.path)}` : undefined
}

async function clear(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
}

/** Whether there was something. */
async function moved(from: string, to: string): Promise<boolean> {
  if ((await stat(from).catch(() => undefined)) === undefined) return false
  await rename(from, to)
  return true
}

function isListOfTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
}

function textsOf(value: unknown): string[] {
  if (!isListOfTexts(value) || value.length > MAX_SOURCES) {
    throw parametersInvalid(`The parameter "packs" must be a list of 1 to ${MAX_SOURCES} texts.`)
  }
  return [...new Set(value)]
}

/** Reference of the pack in a folder whose name says nothing. @throws PACK_SOURCE_UNUSABLE */
async function refIn(folder: string, source: PackSource): Promise<string> {
  const file = await readMetadataFile(folder, 'pack.yaml', 1_048_576)
  if ('problem' in file) throw packSourceUnusable(source.text, describe([file.problem]))
  const manifest = isObject(file.document.value) ? file.document.value : {}
  // An invalid reference is an error, and is not replaced by another one.
  const candidates = manifest['ref'] === undefined ? [manifest['name'], source.name] : [manifest['ref']]
  const ref = candidates.find((text) => typeof text === 'string' && /^[a-z0-9_]{1,255}$/.test(text))
  if (typeof ref === 'string') return ref
  throw packSourceUnusable(source.text, 'pack.yaml needs a "ref" of lower case letters, digits and "_"')
}

function describe(problems: readonly FileProblem[]): string {
  const told = problems.slice(0, MAX_PROBLEMS_TOLD).map(describeProblem)
  const more = problems.length - told.length
  return [...told, ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
}

function countsOf(registered: Readonly<Record<string, number>>): string {
  const counts = Object.entries(registered).filter(([, count]) => count > 0)
  return counts.map(([kind, count]) => `${count} ${count === 1 ? singular(kind) : kind}`).join(', ') || 'nothing'
}

function singular(kind: string): string {
  return kind === 'aliases' ? 'alias' : kind.replace(/ies$/, 'y').replace(/s$/, '')
}

/** @throws PACK_REFUSED */
function checkPlatform(ref: string, manifest: PackManifest, version: string): void {
  const wanted = manifest['svc_version']
  if (typeof wanted === 'string' && !wanted.split(',').every((part) => fits(version, part))) {
    throw packRefused(ref, `it is made for svc ${wanted}, and this is ${version}; "force" installs it all the same`)
  }
  const pythons = manifest['python_versions']
  if (Array.isArray(pythons) && pythons.length > 0 && !pythons.includes('3')) {
    throw packRefused(ref, 'it is made for Python 2, and actions run with Python 3; "force" installs it all the same')
  }
}

function fits(version: string, comparison: string): boolean {
  const [, operator = '', given = ''] = /^\s*([<>=!]*)\s*(\S+)\s*$/.exec(comparison) ?? []
  // 1.2 means 1.2.0
  const parts = given.split('.')
  const padded = parts.length < 3 ? [...parts, '0', '0'].slice(0, 3).join('.') : given
  try {
    return versionMatches(version, `${operator === '=' ? '' : operator}${padded}`)
  } catch {
    return false
  }
}

function dependenciesOf({ dependencies }: PackManifest): string[] {
  return Array.isArray(dependencies) ? dependencies.map(String) : []
}

/** `name` or `name=version`; for an address the name of its repository. */
function parseDependency(text: string): [name: string, version: string | undefined] {
  const at = text.lastIndexOf('=')
  const [place, version] = at > 0 ? [text.slice(0, at), text.slice(at + 1).replace(/^v/, '')] : [text, undefined]
  const name = place.replace(/\.git$/, '').replace(/^.*[/:]/, '')
  return [name.replace(/^(?:stackstorm|svc)-/, ''), version === '' ? undefined : version]
}

/** Those that others need come before these. */
function inOrder(candidates: readonly Candidate[]): Candidate[] {
  const byRef = new Map(candidates.map((candidate) => [candidate.ref, candidate]))
  const ordered = new Set<Candidate>()
  const visit = (candidate: Candidate, seen: ReadonlySet<string>): void => {
    if (ordered.has(candidate) || seen.has(candidate.ref)) return
    for (const dependency of dependenciesOf(candidate.manifest)) {
      const needed = byRef.get(parseDependency(dependency)[0])
      if (needed !== undefined) visit(needed, new Set([...seen, candidate.ref]))
    }
    ordered.add(candidate)
  }
  for (const candidate of candidates) visit(candidate, new Set())
  return [...ordered]
}
