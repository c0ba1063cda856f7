/** The account of a fresh installation: nobody else has its password. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readContainedFile } from '../../../contained-file.ts'
import { hashPassword } from '../../../password-file.ts'
import { createSecretFile, replaceSecretFile } from '../../../secret-file.ts'
import type { AuthBackend, BackendContext } from './backend.ts'

const NAME = 'admin'
const PASSWORD_BYTES = 18
const KEPT = 'initial-admin-password'
const MAX_KEPT_BYTES = 1024

/** Makes the password file with one administrator, unless there is one; shows the password once in the log. */
export async function createFirstAdministrator(file: string, { basePath, log }: BackendContext): Promise<void> {
  const password = randomBytes(PASSWORD_BYTES).toString('base64url')
  const line = `${NAME}:${await hashPassword(password)}\n`
  const kept = join(basePath, KEPT)
  // First what says the password: after a crash in between, the next start replaces it and makes the account.
  await replaceSecretFile(kept, `${password}\n`)
  if (!(await createSecretFile(file, line))) return
  log.warning(
    'auth.first_administrator',
    `Created the user "${NAME}" with the password ${password} (shown only now, kept in ${kept}); change it: svc user passwd ${NAME}`,
  )
}

/**
 * The administrator that this server has made, as long as it has the password that was made with it: behind a changed one
 * could be somebody else of the same name.
 */
export async function findFirstAdministrator(backend: AuthBackend, basePath: string): Promise<string | undefined> {
  const kept = await readContainedFile(basePath, KEPT, MAX_KEPT_BYTES)
  if ('problem' in kept) return undefined
  return (await backend.authenticate(NAME, kept.text.trim())) ? NAME : undefined
}
