/** Which packs there are, and registering them: one registration at a time. */
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { packNotOnDisk } from '../../core/errors.ts'
import type { Log } from '../../lib/log/index.ts'
import { describeProblem, shown } from '../../lib/text/index.ts'
import { scanPack, type PackFiles } from './files.ts'
import type { FolderProblems } from './folder-problems.ts'
import { manifestFile, readPack, type PackProblem } from './read.ts'
import {
  allKinds,
  fingerprintOf,
  noCounts,
  noOverridden,
  registerContent,
  separate,
  TYPES_MARK,
  unregisterContent,
  type ContentOwners,
  type PackRegistration,
  type RegisteredKind,
  withTypes,
} from './register.ts'
import { globalOverrides, overriddenKinds, overridesFolder, type OverriddenKind } from './overrides.ts'
import { asFilesSay, asSwitched, type Switching } from './switches.ts'
import { writeJson } from '../../lib/json/index.ts'
/** Folders looked at in one folder of packs. */
const MAX_PACKS = 2_000
/** Packs that one log line names. */
const MAX_NAMED = 50
/** Packs whose files are looked at side by side. */
const SIDE_BY_SIDE = 8

/** Of several packs. */
export interface Registrations {
  /** Sums over all of them. */
  registered: Record<RegisteredKind, number>
  removed: Record<RegisteredKind, number>
  overridden: Record<OverriddenKind, number>
  /** Each with the pack it is about: its reference, or the name of its folder. */
  problems: (PackProblem & { pack: string })[]
  /** What is registered all the same. */
  warnings: (PackProblem & { pack: string })[]
}

export interface PackService {
  /** Absolute, in the order in which they count: of packs with the same reference the first is the one. */
  folders(): Promise<string[]>
  /** Registers one folder, also if it is unchanged, as its files say. Problems are returned and logged. */
  register(folder: string, kinds?: ReadonlySet<RegisteredKind>): Promise<PackRegistration>
  /**
   * Packs that have changed since they were registered. Problems are logged. What somebody has enabled or disabled stays so
   * until its file says something else than before.
   *
   * @param atOnce see `scanPack`
   * @returns problems of packs that svc includes
   */
  registerChanged(atOnce?: boolean): Promise<PackProblem[]>
  /**
   * What has changed in some folders, or in the configurations or overrides of some packs (`_global`: of all). What others have lacked is tried again.
   * Problems are logged. What somebody has enabled or disabled stays so as with `registerChanged`.
   */
  registerSome(folders: Iterable<string>, packs: Iterable<string>): Promise<void>
  /**
   * @param names references, or paths of folders; undefined: all packs
   * @param switching default: as the files say
   * @throws PACK_NOT_ON_DISK, and nothing is registered then
   */
  registerNamed(
    names: readonly string[] | undefined,
    kinds: ReadonlySet<RegisteredKind>,
    switching?: Switching,
  ): Promise<Registrations>
  /** Deletes the registered content of the pack; its files stay. @returns content that stays, and why */
  unregister(ref: string): Promise<PackProblem[]>
}

export function createPackService(deps: {
  owners: ContentOwners
  /** Runs work on packs one after the other. */
  withLock: <T>(work: () => Promise<T>) => Promise<T>
  log: Log
  /** Folders of packs that come with the program, whose tests have checked them. */
  shipped: readonly string[]
  /** Absolute; the first is where new packs are installed. */
  basePaths: readonly string[]
  folderProblems: FolderProblems
}): PackService {
  const { owners, withLock, log, shipped, basePaths, folderProblems } = deps
  const { store } = owners
  /** Folder → the problems that were logged last. */
  const told = new Map<string, string>()
  const ours: ReadonlySet<string> = new Set(shipped.map((folder) => resolve(folder)))

  async function folders(): Promise<string[]> {
    const found = [...ours]
    for (const basePath of basePaths) found.push(...(await foldersIn(basePath)))
    return found
  }

  async function foldersIn(basePath: string): Promise<string[]> {
    let names: string[]
    try {
      const entries = await readdir(basePath, { withFileTypes: true })
      names = entries
        .filter((entry) => !entry.name.startsWith('.') && (entry.isDirectory() || entry.isSymbolicLink()))
        .map((entry) => entry.name)
        .sort()
    } catch (error) {
      folderProblems.report(basePath, error)
      return []
    }
    folderProblems.clear(basePath)
    if (names.length > MAX_PACKS) {
      log.warning('packs.too_many', `A folder holds more than ${MAX_PACKS} packs; svc ignores the others`, {
        folder: basePath,
      })
    }
    const paths = names.slice(0, MAX_PACKS).map((name) => join(basePath, name))
    const areFolders = await Promise.all(paths.map(isFolder))
    return paths.filter((_, i) => areFolders[i])
  }

  /** Where in the order of packs a folder comes; those outside of all places come last. */
  function rankOf(folder: string): [number, string] {
    if (ours.has(folder)) return [-1, folder]
    const place = basePaths.indexOf(dirname(folder))
    return [place === -1 ? basePaths.length : place, folder]
  }

  /** The folder that a reference belongs to instead of this one. */
  async function otherFolderOf(ref: string, folder: string): Promise<string | undefined> {
    const other = store.knownPacks().find((known) => known.ref === ref)?.folder
    if (other === undefined || other === folder || !(await isThere(join(other, manifestFile)))) return undefined
    const [[place, path], [otherPlace, otherPath]] = [rankOf(folder), rankOf(other)]
    return otherPlace < place || (otherPlace === place && otherPath < path) ? other : undefined
  }

  async function registerOne(
    folder: string,
    {
      kinds = allKinds,
      files,
      switching,
    }: { kinds?: ReadonlySet<RegisteredKind>; files?: PackFiles | undefined; switching?: Switching | undefined } = {},
  ): Promise<PackRegistration> {
    const refused = (problems: PackProblem[]): PackRegistration => ({
      ref: undefined,
      registered: noCounts(),
      overridden: noOverridden(),
      removed: noCounts(),
      ...separate(problems),
    })
    let scanned = files
    try {
      scanned ??= await scanPack(folder)
    } catch {
      return refused([{ file: '.', message: 'the folder of the pack cannot be read' }])
    }
    const content = await readPack(folder)
    if (!('ref' in content)) return refused(content.problems)
    const other = await otherFolderOf(content.ref, folder)
    if (other !== undefined) {
      const where = ours.has(other) ? 'comes with the program' : `is in the folder "${shown(basename(other))}" already`
      const message = `pack "${content.ref}" ${where}, which counts instead of this one`
      return refused([{ file: manifestFile, key: 'ref', message }])
    }
    const facts = await owners.overrides.facts(content.ref)
    const applied = await owners.overrides.apply(content)
    if ('problems' in applied) return refused(applied.problems)
    return registerContent(owners, applied, facts, scanned, { kinds, areOurs: ours.has(folder), switching })
  }

  /** Problems are logged again only when they change. */
  function tell(folder: string, { ref, problems, warnings }: PackRegistration): void {
    const pack = ref ?? basename(folder)
    const text = writeJson([problems, warnings])
    if (told.get(folder) === text) return
    if (problems.length + warnings.length === 0) told.delete(folder)
    else told.set(folder, text)
    for (const problem of problems) log.warning('pack.problem', describeProblem(problem), { pack, ...problem })
    for (const warning of warnings) log.warning('pack.warning', describeProblem(warning), { pack, ...warning })
  }

  /**
   * Those that have problems are tried again where what they need may have come later: trigger types for rules, and the end
   * of rules that use a trigger type.
   */
  async function registerAll(
    some: readonly { folder: string; files?: PackFiles | undefined }[],
    kinds: ReadonlySet<RegisteredKind>,
    switching: Switching,
  ): Promise<{ folder: string; registration: PackRegistration }[]> {
    const done: { folder: string; registration: PackRegistration; types: string }[] = []
    for (const { folder, files } of some) {
      const registration = await registerOne(folder, { kinds, files, switching })
      done.push({ folder, registration, types: owners.triggers.typesVersion() })
    }
    const isChanged = (types: string): boolean => types !== owners.triggers.typesVersion() || haveRulesGone(done)
    for (const one of done) {
      if (some.length === 1 || one.registration.ref === undefined || one.registration.problems.length === 0) continue
      if (!isChanged(one.types)) continue
      const { removed } = one.registration
      one.registration = await registerOne(one.folder, { kinds, switching: { ...switching, keeps: true } })
      add(one.registration.removed, removed)
    }
    await rememberTypes(done)
    for (const { folder, registration } of done) tell(folder, registration)
    return done
  }

  /** Packs with problems that were not read again. */
  function tellRemembered(): void {
    const refs = store
      .knownPacks()
      .flatMap(({ ref, folder, hasProblems }) => (hasProblems && !told.has(folder) ? [ref] : []))
    if (refs.length === 0) return
    const names = refs.slice(0, MAX_NAMED).join(', ')
    const more = refs.length > MAX_NAMED ? ` and ${refs.length - MAX_NAMED} more` : ''
    const what = refs.length === 1 ? '1 pack has problems' : `${refs.length} packs have problems`
    log.warning(
      'packs.problems',
      `${what} as when it was registered: ${names}${more}. svc pack register <pack> lists them`,
    )
  }

  /** What is missing of packs with problems may come with other trigger types: then they are read again. */
  async function rememberTypes(done: readonly { registration: PackRegistration }[]): Promise<void> {
    const types = owners.triggers.typesVersion()
    const steps = done.flatMap(({ registration: { ref, problems } }) => {
      const [read = '', before] = (ref === undefined ? '' : (store.fingerprintOf(ref) ?? '')).split(TYPES_MARK)
      if (ref === undefined || problems.length === 0 || read === '' || before === types) return []
      return [store.setFingerprint(ref, withTypes(read, types))]
    })
    if (steps.length > 0) await owners.database.write({ steps, facts: [] })
  }

  async function tellGone(ref: string, folder: string): Promise<void> {
    const place = dirname(folder)
    // Another message is about the whole directory.
    if (basePaths.includes(place) && !(await isThere(place))) return
    const message = `Pack "${ref}" has no folder any more; its content stays registered until you uninstall the pack`
    log.warning('pack.gone', message, { pack: ref, folder })
  }

  async function changedOf(all: readonly string[], atOnce = false): Promise<{ folder: string; files?: PackFiles }[]> {
    const known = new Map(store.knownPacks().map((pack) => [pack.folder, pack]))
    const results: ({ folder: string; files?: PackFiles } | undefined)[] = []
    for (let start = 0; start < all.length; start += SIDE_BY_SIDE) {
      const some = all.slice(start, start + SIDE_BY_SIDE).map(async (folder) => {
        const files = await scanPack(folder, atOnce).catch(() => undefined)
        if (files === undefined) return { folder }
        const before = known.get(folder)
        const isSame =
          before !== undefined &&
          before.fingerprint === (await fingerprintOf(owners, before.ref, files, before.hasProblems))
        if (isSame) owners.actions.usePackFolder(before.ref, folder)
        return isSame ? undefined : { folder, files }
      })
      results.push(...(await Promise.all(some)))
    }
    return results.filter((result) => result !== undefined)
  }

  function refFolder(ref: string): string | undefined {
    return store.knownPacks().find((known) => known.ref === ref)?.folder
  }

  /** @throws PACK_NOT_ON_DISK */
  /** Looks in the folders of packs once, however many names there are. @throws PACK_NOT_ON_DISK for the first unknown */
  async function locateAll(names: readonly string[]): Promise<string[]> {
    let there: Promise<string[]> | undefined
    const candidates = (): Promise<string[]> => (there ??= folders())
    let refs: Promise<Map<string, string>> | undefined
    const found: string[] = []
    for (const name of new Set(names))
      found.push(await locate(name, candidates, () => (refs ??= readRefs(candidates()))))
    return found
  }

  /** Reference → folder, as the packs say themselves. */
  async function readRefs(candidates: Promise<readonly string[]>): Promise<Map<string, string>> {
    const refs = new Map<string, string>()
    for (const folder of await candidates) {
      const content = await readPack(folder)
      if ('ref' in content && !refs.has(content.ref)) refs.set(content.ref, folder)
    }
    return refs
  }

  async function locate(
    name: string,
    candidates: () => Promise<readonly string[]>,
    refs: () => Promise<ReadonlyMap<string, string>>,
  ): Promise<string> {
    if (name.includes('/')) {
      const folder = resolve(name)
      if (ours.has(folder)) return folder
      if (basePaths.includes(dirname(folder)) && (await isThere(join(folder, manifestFile)))) return folder
      throw packNotOnDisk(name)
    }
    const known = refFolder(name)
    if (known !== undefined && (await isThere(join(known, manifestFile)))) return known
    // Not registered yet: its folder has its name, or says it.
    const folder = (await candidates()).find((path) => basename(path) === name) ?? (await refs()).get(name)
    if (folder === undefined) throw packNotOnDisk(name)
    return folder
  }

  return {
    folders,
    register: (folder, kinds = allKinds) =>
      withLock(async () => {
        const registration = await registerOne(resolve(folder), { kinds })
        tell(folder, registration)
        return registration
      }),

    registerChanged: (atOnce) =>
      withLock(async () => {
        for (const { ref, folder } of store.knownPacks()) {
          owners.actions.usePackFolder(ref, folder)
          // Those in memory: an unchanged pack is not registered again. What is wrong with them was told before.
          await owners.notifications.usePack(ref, folder)
        }
        const done = await registerAll(await changedOf(await folders(), atOnce), allKinds, asSwitched)
        if (atOnce === true) tellRemembered()
        for (const { ref, folder } of store.knownPacks()) {
          if (!(await isThere(join(folder, manifestFile)))) await tellGone(ref, folder)
        }
        const damaged = done.filter(({ folder, registration }) => ours.has(folder) && !isOfOverrides(registration))
        return damaged.flatMap(({ registration }) => registration.problems)
      }),

    registerSome: (some, packs) =>
      withLock(async () => {
        const known = store.knownPacks()
        const concerned = new Set(some)
        for (const pack of packs) {
          const isOf = ({ ref }: { ref: string }): boolean => ref === pack || pack === globalOverrides
          for (const { folder } of known.filter(isOf)) concerned.add(folder)
        }
        const chosen: string[] = []
        for (const folder of concerned) {
          if (await isThere(join(folder, manifestFile))) chosen.push(folder)
          // Without a manifest it is no pack, or not yet.
          else for (const { ref } of known.filter((one) => one.folder === folder)) await tellGone(ref, folder)
        }
        const done = await registerAll(await changedOf(chosen), allKinds, asSwitched)
        for (const { registration } of done) {
          if (registration.ref === undefined) continue
          const { ref, registered, removed, problems } = registration
          const counts = { registered, removed, problems: problems.length }
          log.audit('pack.changed', `Pack "${ref}" has changed on disk and is registered.`, { pack: ref, ...counts })
        }
        if (!done.some(({ registration }) => registration.ref !== undefined)) return
        const types = owners.triggers.typesVersion()
        const read = new Set(done.map(({ folder }) => folder))
        const others = store
          .knownPacks()
          .filter(
            ({ fingerprint, hasProblems, folder }) =>
              !read.has(folder) &&
              (fingerprint === '' || (hasProblems && (!fingerprint.endsWith(types) || haveRulesGone(done)))),
          )
        await registerAll(others, allKinds, asSwitched)
      }),

    registerNamed: (names, kinds, switching = asFilesSay) =>
      withLock(async () => {
        const chosen = names === undefined ? await folders() : await locateAll(names)
        const done =
          kinds.size === 0
            ? []
            : await registerAll(
                [...new Set(chosen)].map((folder) => ({ folder })),
                kinds,
                switching,
              )
        const [registered, removed, overridden] = [noCounts(), noCounts(), noOverridden()]
        const problems: Registrations['problems'] = []
        const warnings: Registrations['warnings'] = []
        for (const { folder, registration } of done) {
          add(registered, registration.registered)
          add(removed, registration.removed)
          for (const kind of overriddenKinds) overridden[kind] += registration.overridden[kind]
          const pack = registration.ref ?? basename(folder)
          problems.push(...registration.problems.map((problem) => ({ pack, ...problem })))
          warnings.push(...registration.warnings.map((warning) => ({ pack, ...warning })))
        }
        return { registered, overridden, removed, problems, warnings }
      }),

    unregister: (ref) => withLock(() => unregisterContent(owners, ref)),
  }
}

/** Whether the files of the site are wrong, not the pack; then what is registered stays as it is. */
function isOfOverrides({ ref, problems }: PackRegistration): boolean {
  return ref === undefined && problems.every(({ file }) => file.startsWith(`${overridesFolder}/`))
}

const haveRulesGone = (done: readonly { registration: PackRegistration }[]): boolean =>
  done.some(({ registration }) => registration.removed.rules > 0)

function add(sums: Record<RegisteredKind, number>, more: Record<RegisteredKind, number>): void {
  for (const kind of allKinds) sums[kind] += more[kind]
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
