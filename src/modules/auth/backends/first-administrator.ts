/** The administrator account of a new installation. */
import { randomBytes } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { readContainedFile, createSecretFile, replaceSecretFile } from '../../../lib/files/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import { hashPassword } from '../../../core/password-file.ts'
import type { AuthBackend, BackendContext } from './backend.ts'

export const FIRST_ADMINISTRATOR = 'admin'
const PASSWORD_BYTES = 18
const KEPT = 'initial-admin-password'
const MAX_KEPT_BYTES = 1024

/** Creates the password file with one administrator if it is missing, and logs the path of the password. */
export async function createFirstAdministrator(file: string, { basePath, log }: BackendContext): Promise<void> {
  const password = randomBytes(PASSWORD_BYTES).toString('base64url')
  const line = `${FIRST_ADMINISTRATOR}:${await hashPassword(password)}\n`
  const kept = join(basePath, KEPT)
  // First what says the password: after a crash in between, the next start replaces it and makes the account.
  await replaceSecretFile(kept, `${password}\n`)
  if (!(await createSecretFile(file, line))) return
  log.warning(
    'auth.first_administrator',
    // Logs are kept, and read by others.
    `Created the user "${FIRST_ADMINISTRATOR}"; the password is in ${kept} until it is changed: svc user passwd ${FIRST_ADMINISTRATOR}`,
  )
}

/**
 * The administrator that this server has made, as long as it has the password that was made with it: behind a changed one
 * could be somebody else of the same name.
 */
export async function findFirstAdministrator(backend: AuthBackend, basePath: string): Promise<string | undefined> {
  const kept = await readContainedFile(basePath, KEPT, MAX_KEPT_BYTES)
  if ('problem' in kept) return undefined
  return (await backend.authenticate(FIRST_ADMINISTRATOR, kept.text.trim())) ? FIRST_ADMINISTRATOR : undefined
}

/** The file with the password of the first administrator, for as long as that is the password. */
export interface KeptPassword {
  /** Removes it unless it is what `isCurrent` accepts. Never rejects: a failure is logged. */
  review(isCurrent: (password: string) => boolean | Promise<boolean>): Promise<void>
}

export function createKeptPassword({ basePath, log }: { basePath: string; log: Log }): KeptPassword {
  const path = join(basePath, KEPT)
  let isGone = false
  return {
    async review(isCurrent) {
      if (isGone) return
      const kept = await readContainedFile(basePath, KEPT, MAX_KEPT_BYTES)
      if ('problem' in kept) {
        isGone = true
        return
      }
      try {
        if (await isCurrent(kept.text.trim())) return
        await unlink(path)
        const message = `The password of "${FIRST_ADMINISTRATOR}" has been changed; removed the file with the first one`
        log.info('auth.initial_password_removed', message, { path })
        isGone = true
      } catch (error) {
        log.warning('auth.initial_password_kept', `${path} holds a password that was changed; remove it`, { error })
      }
    },
  }
}
