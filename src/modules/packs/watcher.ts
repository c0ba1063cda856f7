/** Notices what people change in the folders of packs and in the configurations of the site. */
import type { Stats } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, extname, join, sep } from 'node:path'
import type { FSWatcher } from 'chokidar'
import type { Log } from '../../lib/log/index.ts'
import { codeOf } from '../../lib/process/index.ts'
import { isGenerated } from './files.ts'
import { contentKinds } from './read.ts'

/** Changes come in bursts: changes within this time of each other are one. */
const QUIET_MS = 500
/** Maximum delay of a burst. */
const LONGEST_MS = 5_000
/** Below a folder of packs: the pack, its folders of content, folders in these. */
const DEPTH = 3

export interface Watcher {
  /**
   * Resolves when changes are noticed from now on, or will not be.
   *
   * @param since milliseconds since 1970: what has changed from then on is noticed too. Undefined: nothing of that
   * @returns whether everything has to be looked at again, because it is not known what has changed since
   */
  start(since?: number): Promise<boolean>
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
  readonly load?: () => Promise<Pick<typeof import('chokidar'), 'watch'>>
}

const contentFolders: ReadonlySet<string> = new Set(contentKinds)

export function createWatcher({
  log,
  basePaths,
  configsPath,
  overridesPath,
  packFolders,
  changed,
  load = () => import('chokidar'),
}: WatcherDeps): Watcher {
  /** A file for each pack. */
  const sitePaths = [configsPath, overridesPath]
  let watcher: FSWatcher | undefined
  let isStopped = false
  /** Of a start that waits: a directory that disappears then never becomes ready. */
  let endStart: () => void = () => undefined
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
      for (const real of await followLinks(someFolders)) watcher?.add(real)
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

  /** Of the first look at everything, which the file system answers once. @returns whether it is not known what has changed */
  function noteSince(path: string, { ctimeMs }: Pick<Stats, 'ctimeMs'>, since: number): boolean {
    if (ctimeMs < since) return false
    if (basePaths.includes(path) || sitePaths.includes(path)) return true
    note(path)
    return false
  }

  /** Only what registering a pack looks at. */
  function isIgnored(path: string): boolean {
    if (sitePaths.includes(path) || basePaths.includes(path) || links.has(path)) return false
    const root = [...links.keys(), ...basePaths, ...sitePaths].find((one) => path.startsWith(one + sep))
    if (root === undefined) return true
    const segments = path.slice(root.length + 1).split(sep)
    if (segments.some((name) => isGenerated(name) && name !== '.gitignore')) return true
    if (sitePaths.includes(root)) return segments.length > 1
    // Below the pack itself.
    const inside = links.has(root) ? segments : segments.slice(1)
    return inside.length > 1 && !contentFolders.has(inside[0] ?? '')
  }

  async function giveUp(error: unknown): Promise<void> {
    const isLimit = ['ENOSPC', 'EMFILE', 'ENFILE'].includes(codeOf(error) ?? '')
    const message = isLimit
      ? 'The limit of watched files is reached (fs.inotify.max_user_watches, fs.inotify.max_user_instances): changes of packs are not detected. Raise it, or run svc pack register after changes.'
      : 'Could not watch a folder of packs; changes in it may not be detected'
    log.warning('packs.watch_failed', message, { error })
    if (!isLimit) return
    const given = watcher
    watcher = undefined
    await given?.close()
  }

  return {
    async start(since) {
      await followLinks(await packFolders())
      const { watch } = await load()
      if (isStopped) return false
      let isFirstLook = since !== undefined
      let isUnknown = since === undefined
      const made = watch([...basePaths, ...links.keys(), ...sitePaths], {
        ignoreInitial: true,
        // A link can lead anywhere; those that are packs are followed here.
        followSymlinks: false,
        depth: DEPTH,
        ignored(path, stats) {
          if (isIgnored(path)) return true
          if (isFirstLook && stats !== undefined && since !== undefined && noteSince(path, stats, since))
            isUnknown = true
          return false
        },
      })
      watcher = made
      await new Promise<void>((resolve) => {
        endStart = resolve
        made.on('all', (_, path) => note(path))
        made.on('error', (error) => {
          if (watcher === made) void giveUp(error)
          isUnknown = true
          resolve()
        })
        made.once('ready', resolve)
      })
      isFirstLook = false
      return isUnknown
    },
    async stop() {
      isStopped = true
      endStart()
      clearTimeout(timer)
      timer = undefined
      const given = watcher
      watcher = undefined
      await given?.close()
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
