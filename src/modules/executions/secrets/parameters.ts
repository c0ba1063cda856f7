/**
 * Secret parameters at rest: the row of an execution holds masks in their place, and beside them all parameters encrypted,
 * for the run, for a re-run and for administrators who ask.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Encryption } from '../../../core/encryption.ts'
import { isAppError } from '../../../core/errors.ts'
import { writeJsonInTurns } from '../../../http/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import type { Actions } from '../../actions/index.ts'
import type { Execution } from '../types.ts'
import { isLong, readJson, writeJson } from '../../../lib/json/index.ts'

export interface DecryptedParameters {
  parameters: Record<string, unknown>
  /** Secrets that templates put into them, besides those that a schema marks. */
  secrets: readonly unknown[]
}

export interface ParameterSecrets {
  /**
   * Encrypts the parameters of a new execution and masks the secrets in them. Without secrets nothing changes.
   *
   * @param read secrets that its templates have read
   * @throws CRYPTO_KEY_MISSING, STORAGE_FAILED
   */
  encrypt(execution: Execution, read: readonly unknown[]): void
  /** The same; long parameters are masked and written between other work. */
  encryptInTurns(execution: Execution, read: readonly unknown[]): Promise<void>
  /** @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  decrypt(execution: Execution): DecryptedParameters
  /** The same for reading only: the masked parameters where they cannot be decrypted. */
  decryptOrMask(execution: Execution): DecryptedParameters
  /** With masks in the place of secrets. */
  masked(execution: Execution): Record<string, unknown>
  /** All secrets in the parameters of an execution. @throws as `decrypt` */
  secretsOf(execution: Execution): unknown[]
  /** Names of the parameters that contain a secret. @throws as `decrypt` */
  secretNames(execution: Execution): string[]
}

export function createParameterSecrets(deps: {
  actions: Pick<Actions, 'mask' | 'secretsIn'>
  encryption: Pick<Encryption, 'enabled' | 'encrypt' | 'decrypt'>
  log: Log
}): ParameterSecrets {
  const { actions, encryption, log } = deps

  function decrypt({ id, parameters, sealed_parameters: sealed }: Execution): DecryptedParameters {
    if (sealed === null) return { parameters, secrets: [] }
    // `encrypt` has written it.
    return readJson(encryption.decrypt(sealed, contextOf(id), subjectOf(id))) as unknown as DecryptedParameters
  }

  // Not encrypted: nothing is secret, encryption is off, or the row is older than the encryption of parameters.
  const masked = ({ action, runner, parameters, sealed_parameters: sealed }: Execution): Record<string, unknown> =>
    sealed === null ? actions.mask(action, runner, parameters) : parameters

  function encrypt(execution: Execution, read: readonly unknown[]): void {
    if (!encryption.enabled) return
    const { action, runner, parameters } = execution
    const marked = actions.secretsIn(action, runner, parameters)
    if (marked.length === 0 && read.length === 0) return
    const values = createSecretValues([...marked, ...read])
    const byName = actions.mask(action, runner, parameters)
    const maskedValues = values?.maskValue(byName) ?? byName
    if (marked.length === 0 && maskedValues === parameters) return
    seal(execution, maskedValues, writeJson(decryptedOf(parameters, read)))
  }

  function seal(execution: Execution, maskedValues: unknown, text: string): void {
    const { id } = execution
    execution.sealed_parameters = encryption.encrypt(text, contextOf(id), subjectOf(id))
    execution.parameters = maskedValues as Record<string, unknown> // a copy of an object
  }

  return {
    decrypt,
    encrypt,
    async encryptInTurns(execution, read) {
      const { action, runner, parameters } = execution
      const marked = encryption.enabled && isLong(parameters) ? actions.secretsIn(action, runner, parameters) : []
      if (marked.length === 0) {
        encrypt(execution, read)
        return
      }
      const byName = actions.mask(action, runner, parameters)
      const values = createSecretValues([...marked, ...read])
      const maskedValues = values === undefined ? byName : await values.maskLater(byName)
      const text = await writeJsonInTurns(decryptedOf(parameters, read))
      await nextTurn()
      seal(execution, maskedValues, text)
    },
    decryptOrMask(execution) {
      try {
        return decrypt(execution)
      } catch (error) {
        if (!isAppError(error)) throw error
        log.warning('execution.sealed', 'Could not decrypt the secret parameters of an execution', {
          execution_id: execution.id,
          error,
        })
        return { parameters: execution.parameters, secrets: [] }
      }
    },
    masked,
    secretsOf(execution) {
      const { parameters, secrets } = decrypt(execution)
      return [...actions.secretsIn(execution.action, execution.runner, parameters), ...secrets]
    },
    secretNames(execution) {
      const maskedValues = masked(execution)
      return Object.entries(decrypt(execution).parameters)
        .filter(([name, value]) => (value ?? null) !== null && !isDeepStrictEqual(value, maskedValues[name]))
        .map(([name]) => name)
    },
  }
}

const decryptedOf = (parameters: Record<string, unknown>, read: readonly unknown[]): DecryptedParameters => ({
  parameters,
  secrets: [...new Set(read)],
})
const contextOf = (executionId: string): string => `execution:${executionId}`
const subjectOf = (executionId: string): string => `the parameters of execution ${executionId}`
