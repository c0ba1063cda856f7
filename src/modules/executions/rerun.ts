/** Re-runs an execution: with its parameters, and overrides merged into them. */
import { executionUpdateRefused, permissionDenied } from '../../core/errors.ts'
import { findTemplates } from '../../core/template-values.ts'
import { draftExecution, type ExecutionCaller, type Draft, type DraftOptions } from './request/draft.ts'
import { orquestaName } from '../../runners/index.ts'
import type { RerunRequest } from './request/schemas.ts'
import type { ParameterSecrets } from './secrets/parameters.ts'
import type { Execution } from './types.ts'

/** The parameters of the original that a re-run inherits unchanged. */
interface Kept {
  parameters: Record<string, unknown>
  isAll: boolean
}

export interface Reruns {
  /**
   * Checks a re-run.
   *
   * @param merges whether all original parameters are inherited, instead of those that the request keeps
   * @throws EXECUTION_UPDATE_REFUSED, PERMISSION_DENIED, CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID
   * @returns makes the draft, and throws what `draftExecution` throws
   */
  prepare(caller: ExecutionCaller, original: Execution, request: RerunRequest, merges: boolean): () => Promise<Draft>
}

export function createReruns(
  options: Pick<DraftOptions, 'actions' | 'rolesOf' | 'sources' | 'findExecution'> & {
    parameters: ParameterSecrets
    /** `api.mask_secrets` and `log.mask_secrets` */
    maskSecrets: boolean
  },
): Reruns {
  const { parameters: secrets, maskSecrets, ...draftOptions } = options

  /** Names of the parameters with secrets that are masked for callers other than administrators. */
  const secretNames = (execution: Execution): string[] => (maskSecrets ? secrets.secretNames(execution) : [])

  /** @param names undefined: all */
  function keptOf(original: Execution, names: readonly string[] | undefined): Kept {
    if (names?.length === 0) return { parameters: {}, isAll: false }
    const entries = Object.entries(secrets.decrypt(original).parameters)
    const kept = names === undefined ? entries : entries.filter(([name]) => names.includes(name))
    return { parameters: Object.fromEntries(kept), isAll: kept.length === entries.length }
  }

  /**
   * A caller without access to another user's secrets can re-run with all of them unchanged. With other values beside
   * them, or without some of them, a template could print them, or another command or address would get them.
   *
   * @param kept the parameters that the re-run inherits
   * @returns users whose secrets are among them
   * @throws PERMISSION_DENIED
   */
  function inheritSecrets(
    original: Execution,
    kept: Kept,
    { parameters = {}, user }: RerunRequest,
    caller: ExecutionCaller,
  ): string[] {
    const { isAdmin, user: callingUser, scopes } = caller.principal
    const names = secretNames(original).filter(
      (name) => Object.hasOwn(kept.parameters, name) && !Object.hasOwn(parameters, name),
    )
    if (names.length === 0) return []
    const owners = original.liveaction.secret_owners ?? [original.user]
    // An API key with scopes does not have all permissions of its user.
    const foreign = scopes === undefined ? owners.filter((owner) => owner !== (user ?? callingUser)) : owners
    const isUnchanged = kept.isAll && Object.keys(parameters).length === 0
    if (isAdmin || foreign.length === 0 || isUnchanged) return owners
    throw permissionDenied(
      `The execution has secret parameters (${names.join(', ')}) of "${foreign.join('" and "')}". Replace these secrets too, or re-run it without changes.`,
    )
  }

  /** Parameters with a secret that may come from the default, which the owner of the execution need not know. */
  function secretDefaults(original: Execution): string[] {
    const schemas = options.actions.parametersOf(original.action)
    return secrets
      .secretNames(original)
      .filter((name) => Object.hasOwn(schemas, name) && findTemplates(schemas[name]?.default) !== undefined)
  }

  return {
    prepare(caller, original, request, merges) {
      const tasks = tasksOf(original, request)
      const kept = keptOf(original, merges ? undefined : (request.keep ?? []))
      const secretOwners = inheritSecrets(original, kept, request, caller)
      return async () => {
        const inherited = kept.parameters
        const overrides = request.parameters ?? {}
        const templated = new Set([...Object.keys(overrides), ...(original.liveaction.unrendered ?? [])])
        const draft = await draftExecution({
          ...draftOptions,
          parameters: secrets,
          caller,
          literals: new Set(Object.keys(inherited).filter((name) => !templated.has(name))),
          secretLiterals: new Set(secretDefaults(original).filter((name) => !templated.has(name))),
          request: {
            action: original.action_ref,
            parameters: { ...inherited, ...overrides },
            user: request.user ?? null,
            delay: request.delay ?? null,
          },
          extraContext: { 're-run': { ref: original.id, ...tasks } },
          cause: { kind: 'inherited', trace_id: original.trace_id, caused_by: undefined },
          // A secret of the original stays one, even if the action has changed.
          secrets: Object.keys(inherited).length === 0 ? [] : secrets.secretsOf(original),
        })
        const { execution } = draft
        if (secretOwners.length > 0) {
          const hasOwn = secretNames(execution).some((name) => Object.hasOwn(overrides, name))
          execution.liveaction.secret_owners = [...new Set([...secretOwners, ...(hasOwn ? [execution.user] : [])])]
        }
        return draft
      }
    },
  }
}

/** Which tasks of which workflow execution run again; nothing: all. @throws EXECUTION_UPDATE_REFUSED */
function tasksOf(
  { runner, context }: Execution,
  { tasks = [], reset = [], parameters = {} }: RerunRequest,
): Record<string, unknown> {
  if (tasks.length === 0 && reset.length === 0) return {}
  if (Object.keys(parameters).length > 0) {
    throw executionUpdateRefused('Parameters override is not supported when re-running task(s) for a workflow.')
  }
  if (reset.some((task) => !tasks.includes(task))) {
    throw executionUpdateRefused('List of tasks to reset does not match the tasks to rerun.')
  }
  if (runner.name !== orquestaName) {
    throw executionUpdateRefused('Task option is only supported for Orquesta workflows.')
  }
  const { workflow_execution: workflow } = context
  if (typeof workflow !== 'string') {
    throw executionUpdateRefused('No task of this execution has started: re-run it without tasks.')
  }
  return { workflow_execution: workflow, tasks, ...(reset.length === 0 ? {} : { reset }) }
}
