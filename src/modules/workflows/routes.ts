/** Endpoints of contract 08. */
import { actionResource } from '../../core/permissions.ts'
import type { Compat } from '../../core/compat/index.ts'
import { actionUnknown } from '../../core/errors.ts'
import { route, type Rights, type Route } from '../../http/index.ts'
import { Type } from '../../lib/schema/index.ts'
import { actionChainName, orquestaName } from '../../runners/index.ts'
import type { ActionRecord } from '../actions/types.ts'
import { catalogFor, type ActionSource } from './catalog.ts'
import type { Inspector, InspectRequest } from './inspection/inspector.ts'
import { InspectionEntry, WorkflowGraph } from './types.ts'

export function createWorkflowRoutes({
  actions,
  inspector,
  compat,
}: {
  actions: ActionSource
  inspector: Inspector
  compat: Pick<Compat, 'definition'>
}): Route[] {
  return [
    route({
      surface: 'api',
      method: 'post',
      path: '/workflows/inspect',
      permission: 'authenticated',
      summary:
        'Inspects the definition of a workflow or an action chain, in YAML, without running it. An empty list means that it has no mistakes. Parameters of actions are checked as far as the caller may view them.',
      query: {
        action: {
          type: 'string',
          description:
            'Reference of the action that runs the definition: its runner decides whether that must be a workflow or an action chain. The list also has warnings about its parameters.',
        },
        hints: { type: 'boolean', description: 'Adds hints to entries, and warnings about expressions.' },
      },
      rawBody: Type.String(),
      rawBodyType: 'text/plain',
      changesNothing: true,
      response: Type.Array(InspectionEntry),
      failures: [400, 403, 503],
      async handler({ raw, query, rights }) {
        const catalog = catalogFor(actions, rights)
        const ref = query.action
        const action = ref === undefined ? undefined : visibleAction(actions, rights, ref)
        const form = action === undefined ? undefined : forms[action.runner_type]
        const { text, asWritten } = compat.definition((await raw?.text()) ?? '')
        const found = await inspector.inspect(text, {
          actions: catalog,
          action: action === undefined ? undefined : { ref: action.ref, parameters: action.parameters },
          hints: query.hints === true,
          ...(form === undefined ? {} : { form }),
        })
        return asWritten(found)
      },
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/workflows/graph',
      permission: 'authenticated',
      summary:
        'The graph of the definition of a workflow or an action chain, in YAML: tasks, and the transitions between them. The definition of an action is at /v1/actions/views/entry_point/{ref_or_id}.',
      rawBody: Type.String(),
      rawBodyType: 'text/plain',
      changesNothing: true,
      response: WorkflowGraph,
      failures: [400, 503],
      async handler({ raw }) {
        const { text, asWritten } = compat.definition((await raw?.text()) ?? '')
        return asWritten(await inspector.graph(text))
      },
    }),
  ]
}

/** What the definition of an action must be, by its runner. */
const forms: Readonly<Record<string, InspectRequest['form']>> = {
  [orquestaName]: 'workflow',
  [actionChainName]: 'chain',
}

/** @throws ACTION_UNKNOWN, PERMISSION_DENIED */
function visibleAction(actions: ActionSource, rights: Rights, ref: string): ActionRecord {
  const action = actions.find(ref)
  if (action === undefined) throw actionUnknown(ref)
  rights.require('action_view', actionResource(action.ref))
  return action
}
