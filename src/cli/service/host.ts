/** The system that `svc service` changes: this machine, or a root directory such as an image. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { CliFailure } from '../failures.ts'
import { syncFolderSync } from '../../lib/files/index.ts'
import { codeOf } from '../../lib/process/index.ts'

export interface Owner {
  uid: number
  gid: number
}

export interface Host {
  /** The current location of a path of the machine. */
  at(path: string): string
  /** Whether systemd runs this machine; never so of a folder. */
  readonly hasSystemd: boolean
  /** @returns the owner's numbers; undefined when there is no such account */
  findAccount(name: string): Owner | undefined
  /** An account without login, with its own group. @throws CliFailure */
  makeAccount(name: string, home: string): void
  removeAccount(name: string): void
  /** Replaces the file as a whole, unless it has this content. @returns whether it did */
  write(path: string, content: string, mode: number, group?: number): boolean
  /** The same with a copy of a file, which is made executable. */
  copy(from: string, path: string): boolean
  /** Replaces a link, and nothing else. @throws CliFailure */
  link(target: string, path: string): boolean
  /** With all that is in it. @returns whether there was something */
  remove(path: string): boolean
  /** Whether the command succeeded. */
  systemctl(...words: string[]): boolean
}

/** @param root `/`, or a folder that looks as the machine will */
export function openHost(root: string): Host {
  const isHere = root === '/'
  const at = (path: string): string => join(root, path)
  const prefix = isHere ? [] : ['--prefix', root]

  function run(program: string, words: readonly string[]): { ok: boolean; said: string; isMissing: boolean } {
    const { error, status, stderr } = spawnSync(program, words, {
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    return { ok: error === undefined && status === 0, said: stderr ?? '', isMissing: codeOf(error) === 'ENOENT' }
  }

  function findAccount(name: string): Owner | undefined {
    // The machine may know accounts from elsewhere; those of a folder are in its files.
    const text = isHere
      ? spawnSync('getent', ['passwd', name], { encoding: 'utf8' }).stdout || readText(at('/etc/passwd'))
      : readText(at('/etc/passwd'))
    const line = text.split('\n').find((each) => each.startsWith(`${name}:`))
    const [, , uid = '', gid = ''] = line?.split(':') ?? []
    return uid === '' || gid === '' ? undefined : { uid: Number(uid), gid: Number(gid) }
  }

  const hasGroup = (name: string): boolean =>
    readText(at('/etc/group'))
      .split('\n')
      .some((line) => line.startsWith(`${name}:`))

  /** `make` gets the temporary name. */
  function replace(path: string, make: (staged: string) => void): void {
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
    const staged = join(dirname(path), `.${basename(path)}.${process.pid}`)
    try {
      make(staged)
      renameSync(staged, path)
      syncFolderSync(dirname(path))
    } finally {
      rmSync(staged, { force: true })
    }
  }

  return {
    at,
    hasSystemd: isHere && existsSync('/run/systemd/system'),
    findAccount,
    makeAccount(name, folder) {
      const nobody = existsSync(at('/usr/sbin/nologin')) ? '/usr/sbin/nologin' : '/bin/false'
      const about = 'svc, event-driven automation server'
      const group = hasGroup(name) ? ['--gid', name] : ['--user-group']
      const home = ['--no-create-home', '--home-dir', folder]
      const words = ['--system', ...group, ...home, '--shell', nobody, '--comment', about]
      const made = run('useradd', [...prefix, ...words, name])
      if (made.ok) return
      if (!made.isMissing || !isHere) {
        const why = made.isMissing ? 'the program useradd is missing' : made.said.trim()
        throw new CliFailure(
          `The account "${name}" could not be created: ${why}. Create it by hand and run this command again.`,
        )
      }
      // As in Alpine.
      const madeGroup = run('addgroup', ['-S', name])
      const user = run('adduser', ['-S', '-D', '-H', '-h', folder, '-s', nobody, '-G', name, '-g', about, name])
      if (!user.ok) {
        const why = user.isMissing
          ? 'the programs useradd and adduser are missing'
          : `${madeGroup.said}${user.said}`.trim()
        throw new CliFailure(
          `The account "${name}" could not be created: ${why}. Create it by hand and run this command again.`,
        )
      }
    },
    removeAccount(name) {
      const removed = run('userdel', [...prefix, name])
      if (!removed.ok && !run('deluser', [name]).ok) {
        throw new CliFailure(`The account "${name}" could not be removed: ${removed.said.trim()}.`)
      }
      // Whether it goes with the account is a matter of /etc/login.defs.
      if (hasGroup(name)) run('groupdel', [...prefix, name])
    },
    write(path, content, mode, group) {
      const place = at(path)
      if (readText(place) === content) return false
      replace(place, (staged) => {
        const file = openSync(staged, 'wx', mode)
        try {
          writeFileSync(file, content)
          fsyncSync(file)
        } finally {
          closeSync(file)
        }
        if (group !== undefined) chownSync(staged, 0, group)
        chmodSync(staged, mode)
      })
      return true
    },
    copy(from, path) {
      const place = at(path)
      if (existsSync(place) && readFileSync(place).equals(readFileSync(from))) return false
      // A running process keeps its file.
      replace(place, (staged) => {
        copyFileSync(from, staged)
        chmodSync(staged, 0o755)
      })
      return true
    },
    link(target, path) {
      const place = at(path)
      const there = lstatSync(place, { throwIfNoEntry: false })
      if (there !== undefined && !there.isSymbolicLink()) {
        throw new CliFailure(`${place} exists and is not a link. Remove it and run this command again.`)
      }
      if (there !== undefined && readlinkSync(place) === target) return false
      replace(place, (staged) => symlinkSync(target, staged))
      return true
    },
    remove(path) {
      const place = at(path)
      if (lstatSync(place, { throwIfNoEntry: false }) === undefined) return false
      rmSync(place, { recursive: true })
      return true
    },
    systemctl: (...words) => run('systemctl', words).ok,
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
