/**
 * Secrets in results: the row of an execution holds masks in their place, and beside them the whole result encrypted, for
 * administrators who ask for it.
 */
import type { Encryption } from '../../../core/encryption.ts'
import { storedJson } from '../../../core/stored-json.ts'
import type { Log } from '../../../lib/log/index.ts'
import { createSecretValues, maskedParts, type SecretValues } from '../../../lib/secrets/index.ts'
import type { Actions } from '../../actions/index.ts'
import type { ExecutionStore } from '../store.ts'
import type { Execution } from '../types.ts'
import type { ParameterSecrets } from './parameters.ts'
import { readJson, WrittenJson } from '../../../lib/json/index.ts'

/** A result as its row holds it; `sealed`: the result with its secrets, encrypted. */
export interface StoredResult {
  result: unknown
  sealed?: string
}

export interface ResultWithSecrets {
  readonly value: unknown
  /** What is masked for others. */
  readonly secrets: readonly unknown[]
}

export interface ResultSecrets {
  /** Masks what the output schema of the action marks as secret. */
  mask(execution: Execution, result: Record<string, unknown>): StoredResult
  /** The same for a result from outside: the secrets in the parameters may be in it as well. */
  maskReport(execution: Execution, result: Record<string, unknown>): StoredResult
  /** The result with its secrets, where they can be decrypted. A long one may be a `WrittenJson`. */
  decrypt(execution: Execution): unknown
  /** The same as a value, and the secrets in it; of an execution whose end is not stored yet, or of one with this id. */
  read(ended: Execution | string): ResultWithSecrets
  /** Masks the result of a workflow, which may have the secrets that it has read. */
  maskOutput(
    execution: Execution,
    result: Record<string, unknown>,
    secrets: SecretValues | undefined,
  ): Promise<StoredResult>
  /** Cipher text of a result. @throws CRYPTO_KEY_MISSING */
  encrypt(execution: Execution, result: Record<string, unknown>): string
}

export function createResultSecrets(deps: {
  store: Pick<ExecutionStore, 'sealedResult' | 'resultText'>
  actions: Pick<Actions, 'maskResult' | 'secretsIn'>
  encryption: Encryption
  parameters: Pick<ParameterSecrets, 'decryptOrMask'>
  log: Log
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
}): ResultSecrets {
  const { actions, encryption, log, maskSecrets } = deps

  const encrypt = (execution: Execution, result: Record<string, unknown>): string =>
    encryption.encrypt(storedJson(result), contextOf(execution), 'the result')

  function mask(execution: Execution, result: Record<string, unknown>): StoredResult {
    const masked = actions.maskResult(execution.action, execution.runner, result)
    if (masked === result) return { result }
    if (!encryption.enabled) return { result: maskSecrets ? masked : result }
    try {
      return { result: masked, sealed: encrypt(execution, result) }
    } catch (error) {
      log.error(
        'execution.result_sealed',
        'Could not encrypt the secrets in the result of an execution: they are lost',
        {
          execution_id: execution.id,
          error,
        },
      )
      return { result: masked }
    }
  }

  function shownResult(id: string): unknown {
    const text = deps.store.resultText(id)
    return text === undefined ? null : readJson(text)
  }

  return {
    mask,
    encrypt,
    maskReport(execution, result) {
      if (!maskSecrets) return mask(execution, result)
      const { parameters, secrets } = deps.parameters.decryptOrMask(execution)
      const marked = actions.secretsIn(execution.action, execution.runner, parameters)
      const masked = createSecretValues([...marked, ...secrets])?.maskValue(result) ?? result
      return mask(execution, masked as Record<string, unknown>) // a copy of one
    },
    read(ended) {
      const id = typeof ended === 'string' ? ended : ended.id
      const sealed = typeof ended === 'string' ? deps.store.sealedResult(id) : ended.sealed_result
      const shown = typeof ended === 'string' ? shownResult(ended) : WrittenJson.read(ended.result)
      if (sealed !== undefined) {
        try {
          const value = readJson(encryption.decrypt(sealed, contextOf({ id }), 'the result'))
          return { value, secrets: maskedParts(shown, value) }
        } catch (error) {
          log.error('execution.result_sealed', 'Could not decrypt the secrets in the result of an execution', {
            execution_id: id,
            error,
          })
        }
      }
      return { value: shown, secrets: [] }
    },
    async maskOutput(execution, result, secrets) {
      const masked = (await secrets?.maskLater(result)) ?? result
      if (masked === result) return mask(execution, result)
      const stored = mask(execution, masked as Record<string, unknown>) // a copy of one
      return encryption.enabled ? { ...stored, sealed: encrypt(execution, result) } : stored
    },
    decrypt(execution) {
      const sealed = execution.result === undefined ? undefined : deps.store.sealedResult(execution.id)
      if (sealed === undefined) return execution.result
      try {
        return WrittenJson.of(encryption.decrypt(sealed, contextOf(execution), 'the result'))
      } catch (error) {
        log.error('execution.result_sealed', 'Could not decrypt the secrets in the result of an execution', {
          execution_id: execution.id,
          error,
        })
        return execution.result
      }
    },
  }
}

/** What the cipher text belongs to. */
const contextOf = ({ id }: Pick<Execution, 'id'>): string => `result of execution ${id}`
