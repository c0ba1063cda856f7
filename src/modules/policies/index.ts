/** Policies: how many executions of an action may run at once, and which are run again. */
import type { Bus } from '../../bus/index.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import type { Actions } from '../actions/index.ts'
import type { Executions } from '../executions/index.ts'
import { createApplying } from './apply.ts'
import { createPolicyRoutes } from './routes.ts'
import { policyTypes } from './policy-types.ts'
import { createPolicyService } from './service.ts'
import { createPolicyStore } from './store.ts'
import type { ExecutionPolicies } from '../executions/ports.ts'

export interface Policies extends Module, ExecutionPolicies {
  /** For packs. Ids stay; everything becomes what the file says, see `enabledOf`. */
  registerPolicies(content: PackDefinitions): Promise<Registration>
  /** How many types of policies there are. */
  readonly typeCount: number
}

export interface PoliciesDeps {
  database: Database
  bus: Bus
  log: Log
  actions: Actions
  executions: Executions
  settings: {
    /** Writes the policies of packs. */
    systemUser: string
    maxPageSize: number
  }
}

export function createPolicies(deps: PoliciesDeps): Policies {
  const { database, bus, log, actions, executions, settings } = deps
  const store = createPolicyStore(database)
  const service = createPolicyService({ database, store, actions, log, systemUser: settings.systemUser })
  const applying = createApplying({ store, executions, log })

  bus.subscribe('policy.changed', ({ action_refs: actionRefs }) => {
    for (const ref of actionRefs) {
      applying.forget(ref)
      executions.policiesChanged(ref)
    }
  })

  return {
    name: 'policies',
    routes: createPolicyRoutes({ service, store, maxPageSize: settings.maxPageSize }),
    registerPolicies: (content) => service.register(content),
    typeCount: policyTypes.length,
    limitsOf: (execution, open) => applying.limitsOf(execution, open),
    planRetry: (ended) => applying.planRetry(ended),
  }
}
