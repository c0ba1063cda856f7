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
  // Writes the password first: after a crash in between, the next start replaces it and creates the account.
  await replaceSecretFile(kept, `${password}\n`)
  if (!(await createSecretFile(file, line))) return
  log.warning(
    'auth.first_administrator',
    // The log has only the path, because others can read logs.
    `Created the user "${FIRST_ADMINISTRATOR}"; the password is in ${kept}. Change it with: svc user passwd ${FIRST_ADMINISTRATOR}`,
  )
}

/**
 * The administrator that svc created, as long as it has its first password. With another password, the account could
 * belong to somebody else with the same name.
 */
export async function findFirstAdministrator(backend: AuthBackend, basePath: string): Promise<string | undefined> {
  const kept = await readContainedFile(basePath, KEPT, MAX_KEPT_BYTES)
  if ('problem' in kept) return undefined
  return (await backend.authenticate(FIRST_ADMINISTRATOR, kept.text.trim())) ? FIRST_ADMINISTRATOR : undefined
}

/** The file with the first password of the administrator. svc deletes it once the password changes. */
export interface KeptPassword {
  /** Deletes the file unless `isCurrent` accepts its password. Never rejects; logs a failure. */
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
        const message = `The password of "${FIRST_ADMINISTRATOR}" was changed; deleted the file with the first password`
        log.info('auth.initial_password_removed', message, { path })
        isGone = true
      } catch (error) {
        log.warning(
          'auth.initial_password_kept',
          `Could not delete ${path}, which contains an old password. Delete it.`,
          { error },
        )
      }
    },
  }
}
