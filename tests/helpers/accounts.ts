import { type ExecFileSyncOptions, execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { ensureDebianPackage } from './apt.ts'

export interface Account {
  name: string
  uid: number
  gid: number
  /** Replaces what sudo allows the account, in the words of sudoers after the name; an empty text allows nothing. */
  allow(rule: string): void
  remove(): void
}

const quiet: ExecFileSyncOptions = { stdio: ['ignore', 'ignore', 'pipe'] }

/** Of every account made here. One that exists would be searched by `usermod --uid` for files to hand over. */
export const ACCOUNT_HOME = '/nonexistent'

/**
 * A throwaway account of this machine with sudo installed. Needs root, and says so instead of skipping.
 *
 * @param password for sudo to ask for; without one the account has none
 */
export async function createAccount(name: string, password?: string): Promise<Account> {
  if (process.getuid?.() !== 0) throw new Error(`Only root can create the account "${name}" that these tests need.`)
  await ensureDebianPackage('sudo', '/usr/bin/sudo')
  await ensureDebianPackage('passwd', '/usr/sbin/useradd')
  const rules = `/etc/sudoers.d/${name}`
  const remove = (): void => {
    rmSync(rules, { force: true })
    try {
      execFileSync('/usr/sbin/userdel', ['--force', name], quiet)
    } catch {
      // There was none.
    }
  }
  remove()
  execFileSync('/usr/sbin/useradd', ['--no-create-home', '--home-dir', ACCOUNT_HOME, '--shell', '/bin/sh', name], quiet)
  if (password !== undefined) {
    // As cheap to check as a hash can be.
    const cheap = ['--crypt-method', 'SHA512', '--sha-rounds', '1000']
    execFileSync('/usr/sbin/chpasswd', cheap, { input: `${name}:${password}\n`, stdio: ['pipe', 'ignore', 'pipe'] })
  }
  const idOf = (flag: string): number => Number(execFileSync('/usr/bin/id', [flag, name], { encoding: 'utf8' }))
  return {
    name,
    uid: idOf('-u'),
    gid: idOf('-g'),
    allow: (rule) => {
      rmSync(rules, { force: true })
      if (rule !== '') writeFileSync(rules, `${name} ${rule}\n`, { mode: 0o440 })
    },
    remove,
  }
}
