/** Fetching the files of a pack into a folder: from an archive, a folder, or a git repository. */
import { createReadStream } from 'node:fs'
import { lstat, mkdir, open, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { isAppError, packSourceUnusable, packTooLarge } from '../../core/errors.ts'
import type { PackWork, ProgramEnd } from '../../runners/index.ts'
import { hasCode } from '../../lib/process/index.ts'
import { exists, type PackSource } from './sources.ts'
import { copyTree, MAX_PACK_BYTES, MAX_PACK_FILES, PackBounds } from './tree.ts'
import { shown } from '../../lib/text/index.ts'

/** With what git needs besides; it has no bound of its own. */
export const MAX_FETCHED_BYTES = 4 * MAX_PACK_BYTES
const SIZE_CHECK_MS = 1000
/** Files that are unpacked at once. */
const UNPACKED_BYTES = 16 * 1024

/**
 * Puts the files of a pack into `target`, which is made.
 *
 * @param scratch an empty folder on the same file system; the caller removes it
 * @throws PACK_SOURCE_UNUSABLE, PACK_TOO_LARGE; the reason of the abort
 */
export async function fetchPack(source: PackSource, scratch: string, target: string, work: PackWork): Promise<void> {
  try {
    const folder = await fetchRaw(source, join(scratch, 'raw'), work)
    if (!(await exists(join(folder, 'pack.yaml')))) {
      const isYml = await exists(join(folder, 'pack.yml'))
      throw packSourceUnusable(
        source.text,
        isYml ? 'its pack.yml must be named pack.yaml' : 'there is no pack.yaml in it',
      )
    }
    if (`${scratch}/`.startsWith(`${await realpath(folder)}/`) && source.kind === 'folder') {
      throw packSourceUnusable(source.text, 'it holds the folder in which packs are made ready')
    }
    for (const path of await copyTree(folder, target, work.signal)) {
      await work.warn(`${shown(path)} is left out: it is no file, and no link to something inside of the pack.`)
    }
  } catch (error) {
    if (work.signal.aborted || isAppError(error)) throw error
    if (hasCode(error, 'EACCES', 'EPERM')) {
      throw packSourceUnusable(source.text, "the server's account may not read all of it")
    }
    if (hasCode(error, 'ENOSPC', 'EDQUOT')) {
      throw packSourceUnusable(source.text, 'the disk of the server is full')
    }
    throw error
  }
}

async function fetchRaw(source: PackSource, raw: string, work: PackWork): Promise<string> {
  switch (source.kind) {
    case 'shipped':
    case 'folder':
      return source.path
    case 'archive':
      await work.say(`Unpacking ${shown(source.text)}`)
      await mkdir(raw)
      await unpack(source, raw, work)
      return findTop(raw)
    case 'git':
      await work.say(`Fetching ${shown(source.text)}`)
      await clone(source, raw, work)
      return raw
  }
}

/** Archives are usually of one folder that holds everything. */
async function findTop(raw: string): Promise<string> {
  const entries = await readdir(raw, { withFileTypes: true })
  const [only] = entries
  return entries.length === 1 && only?.isDirectory() === true ? join(raw, only.name) : raw
}

async function unpack(source: Extract<PackSource, { path: string }>, raw: string, work: PackWork): Promise<void> {
  const { UnpackSync } = await import('tar')
  const bounds = new PackBounds()
  const omitted: string[] = []
  let refusal: Error | undefined
  const stopped = new AbortController()
  const refuse = (error: Error): false => {
    refusal ??= error
    stopped.abort()
    return false
  }
  // Piece by piece, so that nothing is still being written when it ends early: who clears it away would find it growing.
  const extractor = new UnpackSync({
    cwd: raw,
    strict: true,
    preserveOwner: false,
    noMtime: true,
    filter(path, entry) {
      if (refusal !== undefined) return false
      if (path.startsWith('/') || path.split(/[/\\]/).includes('..') || path.includes('\0')) {
        return refuse(
          packSourceUnusable(source.text, `the archive wants to write outside of the pack: "${shown(path)}"`),
        )
      }
      if (!('type' in entry)) return false
      const isFolder = entry.type === 'Directory'
      try {
        bounds.add(entry.size)
      } catch (error) {
        return refuse(error instanceof Error ? error : new Error(String(error)))
      }
      if (!isFolder && !['File', 'OldFile', 'ContiguousFile'].includes(entry.type)) {
        omitted.push(path)
        return false
      }
      // Whatever modes the archive sets, svc must be able to read and delete the files.
      entry.mode = isFolder || ((entry.mode ?? 0) & 0o100) !== 0 ? 0o755 : 0o644
      return true
    },
  })
  try {
    const archive = createReadStream(source.path, { highWaterMark: UNPACKED_BYTES })
    const target = extractor as unknown as NodeJS.WritableStream
    const signal = AbortSignal.any([work.signal, stopped.signal])
    if (await isGzip(source.path)) {
      await pipeline(archive, createGunzip({ chunkSize: UNPACKED_BYTES }), target, { signal })
    } else await pipeline(archive, target, { signal })
  } catch (error) {
    work.signal.throwIfAborted()
    if (refusal !== undefined) throw refusal
    if (hasCode(error, 'EACCES', 'EPERM', 'ENOSPC', 'EDQUOT')) throw error
    throw packSourceUnusable(source.text, 'the archive is damaged, or none')
  }
  if (refusal !== undefined) throw refusal
  for (const path of omitted.slice(0, 20))
    await work.warn(`${shown(path)} is left out: an archive may hold files and folders only.`)
}

async function isGzip(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(2), 0, 2, 0)
    return bytesRead === 2 && buffer.readUInt16BE() === 0x1f8b
  } finally {
    await file.close()
  }
}

/** What makes git do less than it was asked for, or more: of a repository around the server, of somebody's settings. */
const gitVariables = [
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_COMMON_DIR',
  'GIT_CONFIG',
  'GIT_CONFIG_COUNT',
  'GIT_CONFIG_PARAMETERS',
  'GIT_DIR',
  'GIT_EXTERNAL_DIFF',
  'GIT_INDEX_FILE',
  'GIT_NAMESPACE',
  'GIT_OBJECT_DIRECTORY',
  'GIT_PREFIX',
  'GIT_TEMPLATE_DIR',
  'GIT_TRACE',
  'GIT_WORK_TREE',
]

/** Changes to the environment of git. */
export const gitEnvironment: Readonly<Record<string, string | undefined>> = {
  ...Object.fromEntries(gitVariables.map((name) => [name, undefined])),
  GIT_ALLOW_PROTOCOL: 'https:ssh:file',
  // git and ssh must not prompt: there is no terminal.
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: 'true',
  SSH_ASKPASS_REQUIRE: 'never',
  GIT_LFS_SKIP_SMUDGE: '1',
  GIT_ADVICE: '0',
  LC_ALL: 'C',
}

async function clone(source: Extract<PackSource, { kind: 'git' }>, raw: string, work: PackWork): Promise<void> {
  const { url, ref } = source
  await mkdir(raw)
  const tooLarge = new AbortController()
  const git = async (args: readonly string[], isQuiet = false): Promise<ProgramEnd> =>
    work.run('git', ['-c', 'core.hooksPath=/dev/null', '-c', 'advice.detachedHead=false', ...args], {
      cwd: raw,
      env: gitEnvironment,
      isQuiet,
      signal: tooLarge.signal,
    })
  const need = async (args: readonly string[]): Promise<void> => {
    const { code, stderr } = await git(args)
    if (code !== 0) throw packSourceUnusable(source.text, `git cannot fetch it: ${lastLine(stderr)}`)
  }
  const fetch = (what: readonly string[], shallow = true): string[] => [
    'fetch',
    '--quiet',
    '--no-tags',
    '--no-recurse-submodules',
    ...(shallow ? ['--depth=1'] : []),
    '--',
    url,
    ...what,
  ]

  const stopWatching = watchSize(raw, () => tooLarge.abort())
  try {
    await fetchRef()
  } catch (error) {
    work.signal.throwIfAborted()
    throw tooLarge.signal.aborted ? packTooLarge(MAX_PACK_FILES, MAX_PACK_BYTES) : error
  } finally {
    stopWatching()
  }

  async function fetchRef(): Promise<void> {
    await need(['init', '--quiet', '--template='])
    if (ref === undefined) {
      await need(fetch(['HEAD']))
      await need(['checkout', '--quiet', '--detach', 'FETCH_HEAD'])
      return
    }
    const wanted = [`refs/heads/${ref}`, `refs/tags/${ref}`, `refs/tags/v${ref}`]
    const listed = await git(['ls-remote', '--quiet', '--', url, ...wanted], true)
    if (listed.code !== 0) throw packSourceUnusable(source.text, `git cannot fetch it: ${lastLine(listed.stderr)}`)
    const names = new Set(listed.stdout.split('\n').map((line) => line.split('\t')[1]))
    const name = wanted.find((candidate) => names.has(candidate))
    if (name !== undefined) {
      await need(fetch([name]))
      await need(['checkout', '--quiet', '--detach', 'FETCH_HEAD'])
      return
    }
    const unknown = packSourceUnusable(source.text, `the repository has no branch, tag or commit "${shown(ref)}"`)
    if (!/^[0-9a-f]{7,64}$/.test(ref)) throw unknown
    // Servers need not hand out single commits, and never know shortened ones.
    if (!/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(ref) || (await git(fetch([ref]), true)).code !== 0) {
      await need(fetch(['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'], false))
    }
    if ((await git(['checkout', '--quiet', '--detach', ref], true)).code !== 0) throw unknown
  }
}

export function lastLine(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const fatal = lines.find((line) => line.startsWith('fatal: ')) ?? lines.at(-1) ?? 'it said nothing'
  return shown(fatal.replace(/^(?:fatal|error): /, ''))
}

/** Calls once the files below a folder are too large together. @returns stops that */
export function watchSize(folder: string, tell: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  const look = async (): Promise<void> => {
    if ((await sizeOf(folder)) > MAX_FETCHED_BYTES) tell()
    else if (!isStopped) timer = setTimeout(() => void look(), SIZE_CHECK_MS)
  }
  timer = setTimeout(() => void look(), SIZE_CHECK_MS)
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}

/** Of what comes and goes while git is at work, as far as it can be seen. */
export async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  let bytes = 0
  for (const entry of entries) {
    const path = join(folder, entry.name)
    bytes += entry.isDirectory() ? await sizeOf(path) : ((await lstat(path).catch(() => undefined))?.size ?? 0)
  }
  return bytes
}
