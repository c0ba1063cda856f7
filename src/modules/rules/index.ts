/** Rules: what shall happen when something has happened. */
import type { Bus } from '../../bus/index.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Module } from '../../core/module.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { Actions } from '../actions/index.ts'
import type { Executions } from '../executions/index.ts'
import type { Traces } from '../traces/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { auditEnforcements } from './audit.ts'
import { createBindings } from './bindings.ts'
import { createEnforcer } from './enforce.ts'
import { createEngine } from './engine.ts'
import { createScopes, type EvaluationContext } from './evaluate.ts'
import { createExplain } from './explain.ts'
import { createRetention } from './retention.ts'
import { createRoutes } from './routes.ts'
import { createRuleService } from './service.ts'
import { createRuleStore } from './store.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { PackConfigs } from '../executions/ports.ts'

export interface Rules extends Module {
  /** Whether an enabled rule is bound to the trigger. */
  hasRules(triggerId: string): boolean
  /** For packs. Ids stay; `enabled` becomes what the file says. */
  registerRules(content: PackDefinitions): Promise<Registration>
}

export interface RulesDeps {
  database: Database
  bus: Bus
  log: Log
  metrics: Metrics
  actions: Actions
  executions: Executions
  triggers: Triggers
  traces: Traces
  /** What templates of rules may read, besides the payload. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  packConfigs: PackConfigs
  settings: {
    /** Acting user of what rules start; writes the rules of packs. */
    systemUser: string
    maxPageSize: number
    /** `api.mask_secrets` and `log.mask_secrets` */
    maskSecrets: boolean
  }
}

export function createRules(deps: RulesDeps): Rules {
  const { database, bus, log, metrics, actions, executions, triggers, traces, templates, packConfigs, settings } = deps
  const { systemUser, maskSecrets, maxPageSize } = settings
  const store = createRuleStore(database)
  const bindings = createBindings({ store, bus, triggers })
  const service = createRuleService({ database, store, actions, triggers, log, maskSecrets, systemUser })
  const scopesFor = (payload: unknown): EvaluationContext['scopeOf'] => createScopes(templates, systemUser, payload)
  const enforcer = createEnforcer({ store, actions, executions, traces, packConfigs, systemUser })
  const engine = createEngine({ bindings, enforcer, triggers, executions, scopesFor, database, bus, log, metrics })
  const explain = createExplain({
    store,
    service,
    actions,
    triggers,
    traces,
    templates,
    scopesFor,
    packConfigs,
    systemUser,
  })
  auditEnforcements(bus, log)

  return {
    name: 'rules',
    gauges: [
      {
        key: 'rulesengine.queue.trigger',
        about: 'Trigger instances that rules have to be looked at for.',
        read: () => triggers.pendingCount(),
      },
    ],
    routes: createRoutes({ service, store, explain, actions, executions, triggers, maxPageSize }),
    retention: [createRetention({ store, database })],
    hasRules: (triggerId) => bindings.has(triggerId),
    registerRules: (content) => service.register(content),
    start() {
      engine.start()
      return Promise.resolve()
    },
    stop: () => engine.stop(),
  }
}
