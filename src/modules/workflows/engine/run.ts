/** A workflow in memory: its program, its state, and what its expressions see besides. */
import type { SecretValues } from '../../../lib/secrets/index.ts'
import { createSecretValues, MAX_SECRET_VALUES } from '../../../lib/secrets/index.ts'
import type { Execution } from '../../executions/types.ts'
import type { State } from '../conductor/index.ts'
import type { Conduct, Program } from './program.ts'
import type { WorkflowHeader } from '../store.ts'

/** What expressions see besides the variables of the workflow. */
export type Environment = Readonly<Record<string, unknown>>

export class Run {
  /** As of the last event. */
  header: WorkflowHeader
  readonly program: Program
  readonly conduct: Conduct
  state: State
  readonly environment: Environment
  readonly #secrets: Set<unknown>
  #values: SecretValues | undefined
  #isCurrent = false
  /** Those that the rows do not have yet. */
  #newSecrets: unknown[] = []
  /** Why svc itself ends it; undefined: it does not. */
  endReason: string | undefined

  constructor(header: WorkflowHeader, program: Program, state: State, known: Known) {
    this.header = header
    this.program = program
    this.conduct = program.createConduct()
    this.state = state
    this.environment = known.environment
    this.#secrets = new Set(known.secrets)
  }

  /** What must not be seen where its variables go. */
  get secrets(): Iterable<unknown> {
    return this.#secrets
  }

  addSecrets(secrets: Iterable<unknown>): void {
    for (const secret of secrets) {
      // With more than these, all texts are masked anyway.
      if (this.#secrets.has(secret) || this.#secrets.size > MAX_SECRET_VALUES) continue
      this.#secrets.add(secret)
      this.#isCurrent = false
      this.#newSecrets.push(secret)
    }
  }

  /** Those that expressions have read since the last call. */
  takeNewSecrets(): readonly unknown[] {
    return this.#newSecrets.splice(0)
  }

  /** undefined: it knows none */
  get secretValues(): SecretValues | undefined {
    if (!this.#isCurrent) this.#values = createSecretValues(this.#secrets)
    this.#isCurrent = true
    return this.#values
  }
}

export interface Known {
  readonly environment: Environment
  readonly secrets: Iterable<unknown>
}

/** `svc` and `parent` (contract 08, 8.7). @param workflow id */
export function environmentOf(execution: Execution, workflow: string, apiUrl: string): Environment {
  const { id, user, action, runner, context } = execution
  const svc = {
    action_execution_id: id,
    workflow_execution_id: workflow,
    api_url: apiUrl,
    user,
    pack: action.pack,
    action: action.ref,
    runner: runner.name,
    ...chatOf(context),
  }
  return { svc, parent: context }
}

/** Who a chat user is, for notifications and the datastore. */
export function chatOf(context: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = ['api_user', 'source_channel'].filter((name) => context[name] !== undefined)
  return Object.fromEntries(names.map((name) => [name, context[name]]))
}
