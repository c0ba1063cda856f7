/**
 * Secret parameters at rest: the row of an execution shows masks in their place, and beside them has everything encrypted,
 * for the run, for a re-run and for administrators who ask.
 */
import type { Encryption } from '../../core/encryption.ts'
import { isAppError } from '../../core/errors.ts'
import { readJson } from '../../lib/text/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { createSecretValues } from '../../lib/secrets/index.ts'
import type { Actions } from '../actions/index.ts'
import type { Execution } from './types.ts'

export interface Opened {
  parameters: Record<string, unknown>
  /** What templates have put into them that must not be seen; those that a schema marks are not listed again. */
  secrets: readonly unknown[]
}

export interface Sealing {
  /**
   * Conceals the secrets in the parameters of a new execution; without any, nothing changes.
   *
   * @param read secrets that its templates have been given
   * @throws CRYPTO_KEY_MISSING, STORAGE_FAILED
   */
  seal(execution: Execution, read: readonly unknown[]): void
  /** The parameters as they are. @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  open(execution: Execution): Opened
  /** The same for who only looks: what cannot be opened is shown as others see it. */
  look(execution: Execution): Opened
  /** With masks in the place of secrets. */
  masked(execution: Execution): Record<string, unknown>
  /** Everything in the parameters of an execution that must not be seen. @throws as `open` */
  secretsOf(execution: Execution): unknown[]
}

export function createSealing(deps: {
  actions: Pick<Actions, 'mask' | 'secretsIn'>
  encryption: Pick<Encryption, 'enabled' | 'seal' | 'open'>
  log: Log
}): Sealing {
  const { actions, encryption, log } = deps

  function open({ id, parameters, sealed_parameters: sealed }: Execution): Opened {
    if (sealed === null) return { parameters, secrets: [] }
    return readJson(encryption.open(sealed, contextOf(id), whatOf(id))) as unknown as Opened // `seal` has written it
  }

  return {
    open,
    seal(execution, read) {
      if (!encryption.enabled) return
      const { id, action, runner, parameters } = execution
      const marked = actions.secretsIn(action, runner, parameters)
      if (marked.length === 0 && read.length === 0) return
      const values = createSecretValues([...marked, ...read])
      const byName = actions.mask(action, runner, parameters)
      const masked = values?.maskValue(byName) ?? byName
      if (marked.length === 0 && masked === parameters) return
      const secrets = [...new Set(read)]
      execution.sealed_parameters = encryption.seal(
        JSON.stringify({ parameters, secrets } satisfies Opened),
        contextOf(id),
        whatOf(id),
      )
      execution.parameters = masked as Record<string, unknown> // a copy of an object
    },
    look(execution) {
      try {
        return open(execution)
      } catch (error) {
        if (!isAppError(error)) throw error
        log.warning('execution.sealed', 'The secret parameters of an execution cannot be shown', {
          execution_id: execution.id,
          error,
        })
        return { parameters: execution.parameters, secrets: [] }
      }
    },
    // Without a seal: nothing is secret, encryption is off, or it was made before parameters were sealed.
    masked: ({ action, runner, parameters, sealed_parameters: sealed }) =>
      sealed === null ? actions.mask(action, runner, parameters) : parameters,
    secretsOf(execution) {
      const { parameters, secrets } = open(execution)
      return [...actions.secretsIn(execution.action, execution.runner, parameters), ...secrets]
    },
  }
}

const contextOf = (executionId: string): string => `execution:${executionId}`
const whatOf = (executionId: string): string => `the parameters of execution ${executionId}`
