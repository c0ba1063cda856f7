/**
 * Other revisions of the files of a pack (contract 03, 3.6: `content_version`), out of its git repository: the folder of
 * the pack is a clone, or svc has installed the pack from a repository.
 *
 * git works in a repository of svc's own, into which it fetches: it follows no settings, hooks or filters of that of the
 * pack, which belongs to whoever wrote the pack.
 */
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HeldVersion, PackWork, ProgramEnd, WantedVersion } from '../../runners/index.ts'
import { syncFolder, syncTree } from '../../lib/files/index.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { shown } from '../../lib/text/index.ts'
import { gitEnvironment, lastLine, MAX_FETCHED_BYTES, sizeOf, watchSize } from './fetch.ts'
import { createLocks } from './locks.ts'
import { exists, isGitRef } from './sources.ts'
import { copyTree, MAX_PACK_BYTES, MAX_PACK_FILES } from './tree.ts'

/** Revisions that are kept, of all packs. */
export const MAX_VERSIONS = 20
const MAX_VERSIONS_BYTES = 4 * MAX_PACK_BYTES
/** Of the list of the files of a revision; the output of git is cut at no less. */
const MAX_LISTED_CHARS = 16_777_216
const FETCH_LIMIT_MS = 600_000
const GIT_LIMIT_MS = 120_000
/** In the folder of the packs; its name is no valid pack reference. */
const ORIGINS = '.origins'
/** Of the lock under which others make room; no pack has this name. */
const ROOM = ''
const fullHash = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

export type VersionWork = Pick<PackWork, 'run' | 'signal' | 'executionId'>

export interface PackVersions {
  /**
   * Makes the files of a revision ready, and keeps them until they are released.
   *
   * @returns `problem`: a sentence for the result of the execution
   * @throws the reason of the abort
   */
  hold(wanted: WantedVersion, work: VersionWork): Promise<HeldVersion | { problem: string }>
  /**
   * What is kept of another repository is removed.
   *
   * @param url of the repository that the pack was installed from; undefined: from none
   */
  installed(pack: string, url: string | undefined): Promise<void>
  /** Removes what is kept of the pack; files that are in use go with the next removal. */
  removed(pack: string): Promise<void>
}

/** Files of a revision on the disk. */
interface Kept {
  pack: string
  commit: string
  bytes: number
  users: number
}

/** A sentence that ends the work. */
class Problem extends Error {}

/**
 * @param folder where revisions and repositories are kept; svc makes it
 * @param packsFolder `content.system_packs_base_path`
 */
export function createPackVersions({ folder, packsFolder }: { folder: string; packsFolder: string }): PackVersions {
  const locks = createLocks()
  /** By pack and commit; the least recently used first. */
  const kept = new Map<string, Kept>()
  let reading: Promise<void> | undefined
  const originFile = (pack: string): string => join(packsFolder, ORIGINS, `${pack}.json`)
  const placeOf = (pack: string, commit: string): string => join(folder, pack, commit)

  /** What an earlier run of the program has left. */
  async function readKept(): Promise<void> {
    const found: (Kept & { usedAt: number })[] = []
    for (const pack of await readdir(folder).catch(() => [])) {
      for (const name of await readdir(join(folder, pack)).catch(() => [])) {
        const place = placeOf(pack, name)
        // Written by a run that did not come to its end.
        if (name.startsWith('new-')) await rm(place, { recursive: true, force: true })
        if (!fullHash.test(name)) continue
        const { mtimeMs } = await stat(place)
        found.push({ pack, commit: name, bytes: await sizeOf(place), users: 0, usedAt: mtimeMs })
      }
    }
    for (const { usedAt: _, ...each } of found.toSorted((a, b) => a.usedAt - b.usedAt)) {
      kept.set(`${each.pack}/${each.commit}`, each)
    }
  }

  /** @param entry is counted as used */
  async function use(entry: Kept): Promise<HeldVersion> {
    const { pack, commit } = entry
    kept.delete(`${pack}/${commit}`)
    kept.set(`${pack}/${commit}`, entry)
    let isReleased = false
    const now = new Date()
    // Says after a restart which ones are used.
    await utimes(placeOf(pack, commit), now, now).catch(() => undefined)
    return {
      folder: join(placeOf(pack, commit), pack),
      release() {
        if (!isReleased) entry.users -= 1
        isReleased = true
      },
    }
  }

  /** Removes the least recently used until there is room. */
  async function makeRoom(bytes: number): Promise<void> {
    const isFull = (): boolean => {
      const used = [...kept.values()].reduce((sum, entry) => sum + entry.bytes, bytes)
      return kept.size >= MAX_VERSIONS || used > MAX_VERSIONS_BYTES
    }
    while (isFull()) {
      const oldest = [...kept.values()].find(({ users }) => users === 0)
      if (oldest === undefined) {
        throw new Problem(
          `svc keeps ${MAX_VERSIONS} revisions of packs with ${MAX_VERSIONS_BYTES} bytes at most, and executions use all of ` +
            'them. Run it again when some have ended.',
        )
      }
      kept.delete(`${oldest.pack}/${oldest.commit}`)
      await rm(placeOf(oldest.pack, oldest.commit), { recursive: true, force: true })
    }
  }

  /** Counts it as used, so that nobody removes it meanwhile. */
  async function findKept(pack: string, commit: string): Promise<Kept | undefined> {
    const entry = kept.get(`${pack}/${commit}`)
    if (entry === undefined) return undefined
    entry.users += 1
    if (await exists(join(placeOf(pack, commit), pack))) return entry
    // Somebody has deleted it.
    kept.delete(`${pack}/${commit}`)
    return undefined
  }

  /** @returns what is counted as used */
  async function make({ pack, packFolder, revision }: WantedVersion, work: VersionWork): Promise<Kept> {
    const known = await findKept(pack, revision)
    if (known !== undefined) return known
    const repository = join(folder, pack, 'repository')
    const git = createGit(repository, work)
    const url = await findRepository(pack, packFolder)
    const commit = await git.find(url, revision, pack)
    const found = await findKept(pack, commit)
    if (found !== undefined) return found

    const bytes = await git.measure(commit, pack, revision)
    const scratch = join(folder, pack, `new-${work.executionId}`)
    try {
      const raw = join(scratch, 'raw')
      await mkdir(raw, { recursive: true })
      await git.write(commit, raw, join(scratch, 'index'))
      const place = join(scratch, 'place')
      await mkdir(place)
      // Named after the pack: the name of its folder means something to who reads it.
      await copyTree(raw, join(place, pack), work.signal)
      await syncTree(place)
      const entry = { pack, commit, bytes, users: 1 }
      await locks.hold(ROOM, work.signal, async () => {
        await makeRoom(bytes)
        // Nothing says that they are there until they are.
        kept.set(`${pack}/${commit}`, entry)
        try {
          await rm(placeOf(pack, commit), { recursive: true, force: true })
          await rename(place, placeOf(pack, commit))
        } catch (error) {
          kept.delete(`${pack}/${commit}`)
          throw error
        }
      })
      await syncFolder(join(folder, pack))
      return entry
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  }

  async function originOf(pack: string): Promise<string | undefined> {
    const origin = await readFile(originFile(pack), 'utf8').then(readJson, () => undefined)
    return isObject(origin) && typeof origin['url'] === 'string' ? origin['url'] : undefined
  }

  async function findRepository(pack: string, packFolder: string): Promise<string> {
    if (packFolder !== '' && (await exists(join(packFolder, '.git')))) return `file://${encodeURI(packFolder)}`
    const origin = packFolder === join(packsFolder, pack) ? await originOf(pack) : undefined
    if (origin !== undefined) return origin
    throw new Problem(
      `The parameter "content_version" cannot be used: svc knows no git repository of the pack "${pack}". Install the pack ` +
        'from the address of its repository, or make its folder a clone of it; or omit the parameter.',
    )
  }

  /** Removes what is kept of the pack and not in use. */
  async function forget(pack: string): Promise<void> {
    await locks.hold(pack, new AbortController().signal, async () => {
      await (reading ??= readKept())
      for (const [key, entry] of kept) {
        if (entry.pack !== pack || entry.users > 0) continue
        kept.delete(key)
        await rm(placeOf(pack, entry.commit), { recursive: true, force: true })
      }
      await rm(join(folder, pack, 'repository'), { recursive: true, force: true })
    })
  }

  return {
    async hold(wanted, work) {
      const { pack, revision } = wanted
      if (!isGitRef(revision)) {
        const problem = `The parameter "content_version" must be a branch, tag or commit, not "${shown(revision)}".`
        return { problem }
      }
      try {
        // Holding it belongs to the lock: nobody may remove it in between.
        return await locks.hold(pack, work.signal, async () => {
          await (reading ??= readKept())
          const entry = await make(wanted, work)
          return use(entry)
        })
      } catch (error) {
        work.signal.throwIfAborted()
        if (error instanceof Problem) return { problem: error.message }
        const why = error instanceof Error ? error.message : String(error)
        return { problem: `The revision "${revision}" of the pack "${pack}" cannot be made ready: ${why}` }
      }
    },
    async installed(pack, url) {
      const file = originFile(pack)
      if ((await originOf(pack)) !== url) await forget(pack)
      if (url === undefined) return await rm(file, { force: true })
      await mkdir(join(packsFolder, ORIGINS), { recursive: true })
      await writeFile(`${file}.new`, writeJson({ url }))
      await rename(`${file}.new`, file)
    },
    async removed(pack) {
      await rm(originFile(pack), { force: true })
      await forget(pack)
    },
  }
}

interface Git {
  /** The commit that a revision is now. */
  find(url: string, revision: string, pack: string): Promise<string>
  /** Bytes of the files of a commit. */
  measure(commit: string, pack: string, revision: string): Promise<number>
  /** Writes the files of a commit into an empty folder. */
  write(commit: string, target: string, index: string): Promise<void>
}

function createGit(repository: string, work: VersionWork): Git {
  /** Without settings of the account: a filter of them would run with what the pack holds. */
  const own = { ...gitEnvironment, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1', GIT_NO_LAZY_FETCH: '1' }

  async function run(
    args: readonly string[],
    { cwd = repository, env = own as Readonly<Record<string, string | undefined>>, limitMs = GIT_LIMIT_MS } = {},
    tooLarge?: AbortSignal,
  ): Promise<ProgramEnd> {
    const late = AbortSignal.timeout(limitMs)
    const settings = ['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'gc.auto=0', 'maintenance.auto=false']
    try {
      return await work.run(
        'git',
        [`--git-dir=${repository}`, ...settings.flatMap((setting) => ['-c', setting]), ...args],
        { cwd, env, isQuiet: true, signal: tooLarge === undefined ? late : AbortSignal.any([late, tooLarge]) },
      )
    } catch (error) {
      work.signal.throwIfAborted()
      if (late.aborted) throw new Problem(`git took longer than ${limitMs / 1000} seconds for the files of the pack.`)
      throw error
    }
  }

  async function need(...request: Parameters<typeof run>): Promise<string> {
    const { code, stdout, stderr } = await run(...request)
    if (code !== 0) throw new Error(`git cannot do it: ${lastLine(stderr)}`)
    return stdout
  }

  /** The repository of the pack may be large, and may have been rewritten. */
  async function fetch(url: string, what: readonly string[]): Promise<ProgramEnd> {
    const tooLarge = new AbortController()
    const stopWatching = watchSize(repository, () => tooLarge.abort())
    try {
      const args = [
        'fetch',
        '--quiet',
        '--force',
        '--prune',
        '--no-tags',
        '--no-recurse-submodules',
        '--update-shallow',
      ]
      const end = await run(
        [...args, '--', url, ...what],
        // Of the account are the credentials.
        { env: { ...gitEnvironment, GIT_NO_LAZY_FETCH: '1' }, limitMs: FETCH_LIMIT_MS },
        tooLarge.signal,
      )
      if ((await sizeOf(repository)) > MAX_FETCHED_BYTES) tooLarge.abort()
      tooLarge.signal.throwIfAborted()
      return end
    } catch (error) {
      work.signal.throwIfAborted()
      if (!tooLarge.signal.aborted) throw error
      await rm(repository, { recursive: true, force: true })
      throw new Problem(`The git repository of the pack is larger than ${MAX_FETCHED_BYTES} bytes.`)
    } finally {
      stopWatching()
    }
  }

  async function commitOf(name: string): Promise<string | undefined> {
    const { code, stdout } = await run(['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`])
    const commit = stdout.trim()
    return code === 0 && fullHash.test(commit) ? commit : undefined
  }

  /** Whether a branch or tag has it in its history. @param kinds `heads`, `tags` or `remotes` */
  async function isIn(kinds: readonly string[], commit: string): Promise<boolean> {
    const places = kinds.map((kind) => `refs/${kind}/`)
    return (await need(['for-each-ref', '--count=1', `--contains=${commit}`, '--format=x', ...places])) !== ''
  }

  return {
    async find(url, revision, pack) {
      if (!(await exists(join(repository, 'HEAD')))) {
        await mkdir(repository, { recursive: true })
        await need(['init', '--quiet', '--bare', '--template='])
      }
      const kinds = ['heads', 'tags', ...(url.startsWith('file:') ? ['remotes'] : [])]
      const head = 'refs/svc/head'
      const wanted = kinds.map((kind) => `+refs/${kind}/*:refs/${kind}/*`)
      const { code, stderr } = await fetch(url, [...wanted, ...(revision === 'HEAD' ? [`+HEAD:${head}`] : [])])
      if (code !== 0) throw new Problem(`git cannot read the repository of the pack "${pack}": ${lastLine(stderr)}`)

      const names = ['heads/', 'tags/', 'tags/v', 'remotes/', 'remotes/origin/'].map(
        (kind) => `refs/${kind}${revision}`,
      )
      const candidates = revision === 'HEAD' ? [head] : names
      const listed = new Set((await need(['for-each-ref', '--format=%(refname)', ...candidates])).split('\n'))
      const name = candidates.find((candidate) => listed.has(candidate))
      const isHash = /^[0-9a-f]{4,64}$/.test(revision)
      const commit = name === undefined && !isHash ? undefined : await commitOf(name ?? revision)
      // Public hosts serve what anybody has pushed to a copy of the repository by its hash, and old objects stay here.
      if (commit !== undefined && (name !== undefined || (await isIn(kinds, commit)))) return commit
      throw new Problem(
        isHash
          ? `The git repository of the pack "${pack}" has no branch, tag or commit "${revision}", or no branch and no tag contains ` +
              'that commit: svc runs no others. Push it to a branch, or change the parameter "content_version".'
          : `The git repository of the pack "${pack}" has no branch, tag or commit "${revision}". Check the parameter "content_version".`,
      )
    },
    async measure(commit, pack, revision) {
      const listed = await need(['ls-tree', '-r', '-l', '-z', '--full-tree', commit])
      const sizes = listed.split('\0').map((line) => Number(/^\S+ \S+ \S+ +(\d+)\t/.exec(line)?.[1] ?? 0))
      const bytes = sizes.reduce((sum, size) => sum + size, 0)
      if (sizes.length <= MAX_PACK_FILES && bytes <= MAX_PACK_BYTES && listed.length < MAX_LISTED_CHARS) return bytes
      throw new Problem(
        `The revision "${revision}" of the pack "${pack}" has more than ${MAX_PACK_FILES} files or ${MAX_PACK_BYTES} bytes.`,
      )
    },
    async write(commit, target, index) {
      const options = { cwd: target, env: { ...own, GIT_INDEX_FILE: index } }
      await need(['--work-tree=.', 'read-tree', commit], options)
      await need(['--work-tree=.', 'checkout-index', '--all', '--quiet'], options)
    },
  }
}
