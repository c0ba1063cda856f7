/** Errors of datastore keys and of encryption. */
import { adviceOnName } from '../compat/index.ts'
import { shown } from '../../lib/text/index.ts'
import { AppError } from './app-error.ts'
import { permissionDenied } from './permissions.ts'

// Datastore

/** @param scope as stored: `svckv.system` */
export const keyNotFound = (name: string, scope: string): AppError =>
  new AppError('KEY_NOT_FOUND', `KeyValuePair with name: ${shown(name)} and scope: ${shown(scope)} not found in db.`)

/** For a request about one item. */
export const keyScopeUnknown = (scope: string, allowed: readonly string[]): AppError =>
  new AppError(
    'KEY_SCOPE_UNKNOWN',
    `Scope ${shown(scope)} is not in allowed scopes list: [${allowed.map((name) => `'${name}'`).join(', ')}].${adviceOnName('scope', scope)}`,
  )

/** For a request about a list of items. */
export const keyScopeInvalid = (scope: string, allowed: readonly string[]): AppError =>
  new AppError(
    'KEY_SCOPE_UNKNOWN',
    `Invalid scope: ${shown(scope)}. Use one of ${allowed.join(', ')}.${adviceOnName('scope', scope)}`,
  )

/** The caller has named another user. */
export const keyUserRefused = (isAccessControlled: boolean): AppError =>
  permissionDenied(
    `"user" attribute can only be provided by admins${isAccessControlled ? '' : ' when RBAC is enabled'}`,
  )

export const decryptRefused = (): AppError => permissionDenied('Decrypt option requires administrator access')

export const preEncryptedRefused = (): AppError =>
  permissionDenied('Pre-encrypted option requires administrator access')

// Encryption

/** @param what the kind of data to encrypt, in words; not a secret */
export const cryptoKeyMissing = (path: string, what: string, advice: string): AppError =>
  new AppError('CRYPTO_KEY_MISSING', `Crypto key not found in ${path}. Unable to encrypt / decrypt ${what}. ${advice}`)

/** Of an item that was given encrypted. @param why as the message of `cipherTextInvalid` */
export const cipherTextOfOther = (why: string): AppError =>
  new AppError(
    'CIPHER_TEXT_INVALID',
    `${why} A value that svc has encrypted belongs to the name, the scope and the user that it was encrypted for: the name counts.`,
  )

/** @param what the kind of encrypted data, in words */
export const cipherTextInvalid = (what: string, why: string): AppError =>
  new AppError('CIPHER_TEXT_INVALID', `Unable to decrypt ${what}: ${why}.`)
