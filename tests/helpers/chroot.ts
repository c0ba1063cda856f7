/** A bare Debian in a folder, and programs that run in it and see no file of this machine. */
import { execFile, execFileSync } from 'node:child_process'
import { chownSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ensureDebianPackage } from './apt.ts'

const run = promisify(execFile)

/** Nobody in particular. */
const OUTSIDER = 64_123

export interface Chroot {
  readonly path: string
  /** A folder of the account that programs run as by default; as programs see it. */
  readonly home: string
  /** The command that runs `words` inside. The process that it starts becomes the program. */
  command(words: readonly string[], options?: InsideOptions): [string, ...string[]]
  /** Of every process that has its root here. */
  pids(): number[]
}

export interface InsideOptions {
  /** Name or number; default: one that the system does not know. */
  account?: string | number
  /** Default: `home`. */
  cwd?: string
  env?: Record<string, string>
  /** Further tmpfs besides `/tmp` and `/dev/shm`, which are new and empty for each program. */
  tmpfs?: readonly string[]
  /** Options of all of them; default: none. */
  tmpfsOptions?: string
  /** The only folders that can be written to besides those tmpfs; default: all can. */
  writable?: readonly string[]
}

/**
 * Debian's own packages with what they depend on, unpacked and not configured: `debootstrap` gives the same files and takes
 * three to ten times as long.
 *
 * @param path of a folder that does not exist
 */
export async function makeChroot(path: string, packages: readonly string[]): Promise<Chroot> {
  // The lists of packages may be old, or missing: it sees to them.
  await ensureDebianPackage('util-linux', '/usr/bin/unshare')
  const debs = `${path}.debs`
  for (const folder of [path, debs]) mkdirSync(folder)
  const wanted = ['base-files', 'coreutils', 'dash', 'libc6', 'libstdc++6', ...packages]
  const download = async (): Promise<void> => {
    const { stdout } = await run('apt-cache', ['depends', '--recurse', '--important', ...wanted])
    const names = [...new Set(stdout.match(/^[a-z0-9][a-z0-9.+-]*$/gm))]
    await run('apt-get', ['download', '-qq', ...names], { cwd: debs })
  }
  await download().catch(async () => {
    await run('apt-get', ['update', '-qq'])
    await download()
  })
  for (const deb of readdirSync(debs)) await run('dpkg-deb', ['--extract', join(debs, deb), path])
  rmSync(debs, { recursive: true })

  const home = '/home/outsider'
  mkdirSync(join(path, home), { recursive: true })
  chownSync(join(path, home), OUTSIDER, OUTSIDER)
  mkdirSync(join(path, 'dev/shm'), { recursive: true })
  const devices = { null: 3, zero: 5, random: 8, urandom: 9 }
  for (const [name, minor] of Object.entries(devices)) {
    execFileSync('mknod', ['--mode=666', join(path, 'dev', name), 'c', '1', String(minor)])
  }
  const accounts = {
    passwd: 'root:x:0:0:root:/root:/bin/sh\n',
    group: 'root:x:0:\n',
    shadow: 'root:*:::::::\n',
    gshadow: 'root:*::\n',
  }
  for (const [name, text] of Object.entries(accounts)) writeFileSync(join(path, 'etc', name), text)
  return openChroot(path, home)
}

/** The first test that needs it makes it, others copy it. */
const BOOTSTRAP = `[ -d "$1" ] && exit 0
rm -rf "$1.new"
debootstrap --variant=minbase --include=adduser "$2" "$1.new"
mv "$1.new" "$1"`

/**
 * A whole small Debian of the release of this machine, with all packages configured and `adduser`.
 *
 * @param path of a folder that does not exist
 */
export async function makeDebian(path: string): Promise<Chroot> {
  await ensureDebianPackage('debootstrap', '/usr/sbin/debootstrap')
  const [, release = ''] = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8')) ?? []
  const base = `/tmp/svc-test-debian-${release}`
  const words = [`${base}.lock`, 'sh', '-ec', BOOTSTRAP, 'sh', base, release]
  await run('flock', words, { maxBuffer: 16 * 1024 * 1024 })
  await run('cp', ['-a', base, path])
  return openChroot(path, '/root')
}

function openChroot(path: string, home: string): Chroot {
  return {
    path,
    home,
    command(
      words,
      { account = OUTSIDER, cwd = home, env = {}, tmpfs = [], tmpfsOptions = 'mode=1777', writable } = {},
    ) {
      const mounts = ['/tmp', '/dev/shm', ...tmpfs].map((at) => `mount -t tmpfs -o "$2" tmpfs "$1${at}"`)
      const bind = ['', ...(writable ?? [])].map((at) => `mount --bind "$1${at}" "$1${at}"`)
      const [before, after] = writable === undefined ? [[], []] : [bind, ['mount -o remount,bind,ro "$1"']]
      const proc = 'mount -t proc proc "$1/proc"'
      const script = ['set -e', ...before, proc, ...mounts, ...after, 'shift 2', 'exec chroot "$@"'].join('\n')
      const user = typeof account === 'number' ? `${account}:${account}` : account
      const variables = Object.entries({ PATH: '/usr/local/bin:/usr/bin:/bin', ...env }).map((pair) => pair.join('='))
      const inside = [`--userspec=${user}`, path, 'env', '-i', '-C', cwd, ...variables, ...words]
      return ['unshare', '--mount', 'sh', '-c', script, 'sh', path, tmpfsOptions, ...inside]
    },
    pids: () =>
      readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map(Number)
        .filter((pid) => rootOf(pid) === path),
  }
}

function rootOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/root`)
  } catch {
    return ''
  }
}

/** The same for what may take longer than the runner of tests waits for an answer of this process. @throws */
export async function runLong(chroot: Chroot, words: readonly string[], options?: InsideOptions): Promise<string> {
  const [program, ...rest] = chroot.command(words, options)
  return (await run(program, rest, { maxBuffer: 16 * 1024 * 1024 })).stdout
}

/** A program of the chroot, run to its end. @throws as `execFileSync` does */
export function runInside(chroot: Chroot, words: readonly string[], options?: InsideOptions): string {
  const [program, ...rest] = chroot.command(words, options)
  return execFileSync(program, rest, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}
