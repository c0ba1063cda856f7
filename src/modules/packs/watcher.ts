/** Notices what people change in the folders of packs and in the configurations of the site. */
import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, extname, join, sep } from 'node:path'
import { watchDirectories, type DirectoryWatchOptions } from '../../lib/files/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { isGenerated } from './files.ts'
import { metadataFolders } from './read.ts'

/** Changes come in bursts: changes within this time of each other are one. */
const QUIET_MS = 500
/** Maximum delay of a burst. */
const LONGEST_MS = 5_000
/** In a pack: its folders of content, folders in these. */
const DEPTH = 2

export interface Watcher {
  /** Resolves when changes are noticed from now on, or will not be. */
  start(): Promise<void>
  stop(): Promise<void>
}

export interface WatcherDeps {
  log: Log
  /** Absolute; those that do not exist are not watched. */
  basePaths: readonly string[]
  configsPath: string
  overridesPath: string
  /** Folders of packs; those that are links lead elsewhere. */
  readonly packFolders: () => Promise<readonly string[]>
  /** Folders in which something has changed, and packs whose configuration or overrides have. Never rejects. */
  readonly changed: (folders: ReadonlySet<string>, packs: ReadonlySet<string>) => Promise<void>
  /** For tests. */
  readonly watch?: DirectoryWatchOptions['watch']
}

const contentFolders: ReadonlySet<string> = new Set(metadataFolders)

export function createWatcher({
  log,
  basePaths,
  configsPath,
  overridesPath,
  packFolders,
  changed,
  watch,
}: WatcherDeps): Watcher {
  /** A file for each pack. */
  const sitePaths = [configsPath, overridesPath]
  const tree = watchDirectories({
    enters,
    changed(path) {
      if (!isIgnored(path)) note(path)
    },
    failed,
    ...(watch === undefined ? {} : { watch }),
  })
  /** Real folder → the link that leads to it. */
  const links = new Map<string, string>()
  let folders = new Set<string>()
  let packs = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let firstAt = 0
  let working: Promise<void> = Promise.resolve()

  function note(path: string): void {
    if (sitePaths.includes(dirname(path))) {
      if (extname(path) !== '.yaml') return
      packs.add(basename(path, '.yaml'))
    } else {
      const folder = packFolderOf(path)
      if (folder === undefined) return
      folders.add(folder)
    }
    const now = performance.now()
    if (timer === undefined) firstAt = now
    clearTimeout(timer)
    timer = setTimeout(deliver, Math.max(0, Math.min(QUIET_MS, firstAt + LONGEST_MS - now)))
    timer.unref()
  }

  function deliver(): void {
    timer = undefined
    const [someFolders, somePacks] = [folders, packs]
    folders = new Set()
    packs = new Set()
    working = working.then(async () => {
      await tree.settled()
      for (const real of await followLinks(someFolders)) await tree.add(real)
      await changed(someFolders, somePacks)
    })
  }

  /** @returns where those that are links lead, if that was not known */
  async function followLinks(some: Iterable<string>): Promise<string[]> {
    const found: string[] = []
    for (const path of some) {
      if (!(await isLink(path))) continue
      const real = await realpath(path).catch(() => undefined)
      if (real === undefined || links.has(real)) continue
      links.set(real, path)
      found.push(real)
    }
    return found
  }

  function packFolderOf(path: string): string | undefined {
    for (const [real, link] of links) {
      if (path === real || path.startsWith(real + sep)) return link
    }
    const base = basePaths.find((one) => path.startsWith(one + sep))
    if (base === undefined) return undefined
    const [name = ''] = path.slice(base.length + 1).split(sep)
    return join(base, name)
  }

  /** Names on the way from a watched place: undefined outside of all. */
  function placeOf(path: string): { root: string; names: string[] } | undefined {
    const root = [...links.keys(), ...basePaths, ...sitePaths].find((one) => path === one || path.startsWith(one + sep))
    if (root === undefined) return undefined
    return { root, names: path === root ? [] : path.slice(root.length + 1).split(sep) }
  }

  /** Names below the pack itself; undefined: it is a folder of packs. */
  function insideOf({ root, names }: { root: string; names: string[] }): string[] | undefined {
    if (links.has(root)) return names
    return names.length === 0 ? undefined : names.slice(1)
  }

  const isOfNoInterest = (name: string): boolean => isGenerated(name) && name !== '.gitignore'

  function enters(path: string): boolean {
    const place = placeOf(path)
    if (place === undefined || place.names.some(isOfNoInterest)) return false
    if (sitePaths.includes(place.root)) return place.names.length === 0
    const [first, ...deeper] = insideOf(place) ?? []
    return first === undefined || (contentFolders.has(first) && deeper.length < DEPTH)
  }

  /** Only what registering a pack looks at is not. */
  function isIgnored(path: string): boolean {
    const place = placeOf(path)
    if (place === undefined || place.names.some(isOfNoInterest)) return true
    if (sitePaths.includes(place.root)) return place.names.length > 1
    const [first = '', ...deeper] = insideOf(place) ?? []
    return deeper.length > 0 && !contentFolders.has(first)
  }

  function failed(error: unknown, isLimit: boolean): void {
    const message = isLimit
      ? 'The limit of watched directories is reached (fs.inotify.max_user_watches, fs.inotify.max_user_instances): changes of packs are not detected. Raise it, or run svc pack register after changes.'
      : 'Could not watch a folder of packs; changes in it may not be detected'
    log.warning('packs.watch_failed', message, { error })
  }

  return {
    async start() {
      await followLinks(await packFolders())
      for (const path of [...basePaths, ...links.keys(), ...sitePaths]) await tree.add(path)
    },
    async stop() {
      clearTimeout(timer)
      timer = undefined
      tree.stop()
      await working
    },
  }
}

async function isLink(path: string): Promise<boolean> {
  return lstat(path).then(
    (found) => found.isSymbolicLink(),
    () => false,
  )
}
