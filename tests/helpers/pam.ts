/** Throwaway PAM services, and a module that does what real ones should not. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureDebianPackage } from './apt.ts'

const libraryFolder = `/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`
const GCC = '/usr/bin/gcc'

/** The library and the modules that come with it. */
export async function ensurePam(): Promise<void> {
  await ensureDebianPackage('libpam0g', join(libraryFolder, 'libpam.so.0'))
  await ensureDebianPackage('libpam-modules', join(libraryFolder, 'security', 'pam_unix.so'))
  await ensureDebianPackage('libpam-modules', join(libraryFolder, 'security', 'pam_exec.so'))
}

/** A name for an account or a service that nothing else of this machine has. */
export function throwawayName(): string {
  return `svc-test-${randomBytes(6).toString('hex')}`
}

export interface PamService {
  name: string
  file: string
  /** Replaces the lines of the service; it is a new file, not a changed one. */
  write(...lines: string[]): void
  remove(): void
}

/** @param lines without the `auth` they begin with: `required pam_unix.so` */
export function createPamService(...lines: string[]): PamService {
  const name = throwawayName()
  const file = `/etc/pam.d/${name}`
  const service: PamService = {
    name,
    file,
    write(...changed) {
      service.remove()
      writeFileSync(file, changed.map((line) => `auth ${line}\n`).join(''), { flag: 'wx' })
    },
    remove: () => rmSync(file, { force: true }),
  }
  service.write(...lines)
  return service
}

/** Compiles `fixtures/pam-module.c` into this folder, and returns its path, which a service names. */
export async function buildPamModule(folder: string): Promise<string> {
  await ensureDebianPackage('gcc', GCC)
  const source = join(import.meta.dirname, '..', 'fixtures', 'pam-module.c')
  const module = join(folder, 'module.so')
  const options = ['-Wall', '-Werror', '-fno-builtin', '-shared', '-fPIC', '-nostdlib']
  execFileSync(GCC, [...options, '-o', module, source, join(libraryFolder, 'libpam.so.0')])
  return module
}

export interface Barrier {
  /** Path of what waits: it is in the command lines of the processes that do. */
  program: string
  /** Line of a service that lets nobody pass before `open`. */
  line: string
  /** How many have come to it. */
  reached(): number
  open(): void
}

/**
 * A module that waits, by a program that it starts.
 *
 * @param user the only one who has to wait; default everybody
 */
export function createBarrier(folder: string, user?: string): Barrier {
  const program = join(folder, throwawayName())
  const arrived = `${program}.arrived`
  const opened = `${program}.opened`
  const condition = user === undefined ? 'true' : `[ "$PAM_USER" = "${user}" ]`
  const wait = `if ${condition}; then echo >> ${arrived}; until [ -e ${opened} ]; do sleep 0.05; done; fi`
  writeFileSync(program, `#!/bin/sh\n${wait}\n`)
  chmodSync(program, 0o755)
  return {
    program,
    line: `required pam_exec.so quiet ${program}`,
    reached: () => statSync(arrived, { throwIfNoEntry: false })?.size ?? 0,
    open: () => writeFileSync(opened, ''),
  }
}
