/** From a chat command to executions (contract 02, 2.13), and what the chat user is told at once. */
import { bodyInvalid, isAppError } from '../../core/errors.ts'
import { actionResource, userResource } from '../../core/permissions.ts'
import { createRenderer, findTemplates } from '../../core/template-values.ts'
import { isObject } from '../../lib/schema/index.ts'
import type { Actions } from '../actions/index.ts'
import type { Executions } from '../executions/index.ts'
import type { Execution, ExecutionRecord } from '../executions/types.ts'
import type { Matching, Representation } from './matching.ts'
import type { ContentCaller } from '../../http/index.ts'
import type { AliasExecutionRecord, AliasExecutionRequest, MatchAndExecuteRequest } from './execution-types.ts'
import type { AliasRecord } from './types.ts'
import { valuesOf, withImmutable } from './values.ts'

export interface AliasRuns {
  /**
   * All executions that the command asks for, or an error and none.
   *
   * @throws BODY_INVALID, ALIAS_UNKNOWN, ALIAS_AMBIGUOUS, ALIAS_DISABLED, FORMAT_UNKNOWN, COMMAND_UNMATCHED, ACTION_UNKNOWN,
   * PERMISSION_DENIED, PARAMETERS_INVALID, and what a request for an execution throws
   */
  execute(caller: ContentCaller, request: AliasExecutionRequest): Promise<AliasExecutionRecord[]>
  /** @throws COMMAND_UNMATCHED, COMMAND_AMBIGUOUS, and what `execute` throws */
  matchAndExecute(caller: ContentCaller, request: MatchAndExecuteRequest): Promise<AliasExecutionRecord[]>
  /** What was answered to the request for it. */
  recordOf(execution: Execution, alias: AliasRecord): AliasExecutionRecord
}

/** How an execution names the alias that asked for it: packs read `id` and `name`. */
const aliasReference = ({ id, name }: AliasRecord): { id: string; name: string } => ({ id, name })

/** @returns the id in such a reference */
export const aliasIdIn = (reference: unknown): string | undefined =>
  isObject(reference) && typeof reference['id'] === 'string' ? reference['id'] : undefined

export function createAliasRuns({
  matching,
  actions,
  executions,
}: {
  matching: Matching
  actions: Pick<Actions, 'parametersOf'>
  executions: Pick<Executions, 'requestAll' | 'record' | 'actionOf'>
}): AliasRuns {
  async function run(
    caller: ContentCaller,
    representation: Representation,
    request: MatchAndExecuteRequest,
  ): Promise<AliasExecutionRecord[]> {
    const { alias } = representation
    const commands = matching.read(representation, request.command)
    const action = executions.actionOf(alias.action_ref)
    caller.rights.require('action_execute', actionResource(action.ref))
    const schemas = actions.parametersOf(action)
    const wanted = commands.map((command) => {
      const values = valuesOf(command, schemas)
      return { literals: new Set(Object.keys(values)), parameters: withImmutable(values, alias.immutable_parameters) }
    })
    const { principal, rights } = caller
    const mayReadAs = request.user === principal.user || rights.may('user_impersonate', userResource(request.user))
    const extraContext = {
      action_alias_ref: aliasReference(alias),
      api_user: request.user,
      source_channel: request.source_channel,
      ...(mayReadAs ? {} : { datastore_user: principal.user }),
    }
    const notify = notifyOf(request)
    const requests = wanted.map(({ parameters, literals }) => ({
      request: { action: action.ref, parameters, ...(notify === undefined ? {} : { notify }) },
      more: { extraContext, literals, notifyIsData: true },
    }))
    return (await executions.requestAll(caller, requests)).map((execution) => recordOf(execution, alias))
  }

  function recordOf(execution: Execution, alias: AliasRecord): AliasExecutionRecord {
    const record = executions.record(execution)
    return { execution: record, actionalias: alias, ...acknowledge(record, alias) }
  }

  return {
    recordOf,
    execute(caller, { name, format, ...request }) {
      if (name === undefined || name === null || name === '') {
        throw bodyInvalid('Alias execution "name" is required', { path: ['name'] })
      }
      return run(caller, matching.named(name, format), request)
    },
    async matchAndExecute(caller, request) {
      return run(caller, await matching.find(request.command), request)
    },
  }
}

/** Undefined: nobody is to be told. */
function notifyOf(request: MatchAndExecuteRequest): Record<string, unknown> | undefined {
  const { user, source_channel, source_context, notification_route: route, notification_channel: channel } = request
  const routes = [route, channel].find((name) => typeof name === 'string' && name !== '')
  if (typeof routes !== 'string') return undefined
  const data = { user, source_channel, ...(source_context === undefined ? {} : { source_context }) }
  return { 'on-complete': { routes: [routes], data } }
}

/** `ack` of the alias, rendered; what cannot be rendered says why. */
function acknowledge(execution: ExecutionRecord, alias: AliasRecord): { message?: string; extra?: unknown } {
  const { format, extra } = alias.ack
  const templates = findTemplates([format, extra])
  if (templates === undefined) {
    return { ...(typeof format === 'string' ? { message: format } : {}), ...(isObject(extra) ? { extra } : {}) }
  }
  const renderer = createRenderer(templates)
  const variables = new Map<string, unknown>([
    ['execution', execution],
    ['actionalias', alias],
  ])
  const render = (field: string, value: unknown): unknown => {
    try {
      return renderer.render(`ack.${field}`, value, variables)
    } catch (error) {
      if (!isAppError(error)) throw error
      return `Cannot render "${field}" in field "ack" for alias. ${error.message}`
    }
  }
  const message = typeof format === 'string' ? render('format', format) : undefined
  return {
    ...(message === undefined
      ? {}
      : { message: typeof message === 'string' ? message : String(renderer.print('ack.format', message)) }),
    ...(isObject(extra) ? { extra: render('extra', extra) } : {}),
  }
}
