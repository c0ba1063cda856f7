/** Rules: which action svc runs for which event. */
import type { Bus } from '../../bus/index.ts'
import type { Notify } from '../../core/notify.ts'
import { ruleResource, type Scope } from '../../core/permissions.ts'
import type { Database } from '../../db/index.ts'
import type { Rights } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Module } from '../../core/module.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import type { TemplateThread } from '../../core/rendering/index.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { Actions } from '../actions/index.ts'
import type { Executions } from '../executions/index.ts'
import type { RuleKeeps } from '../executions/ports.ts'
import type { Traces } from '../traces/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { auditEnforcements } from './enforcement/audit.ts'
import { createBindings } from './enforcement/bindings.ts'
import { createEnforcer, createStrangerOf, type CascadeLimits } from './enforcement/enforce.ts'
import { createEngine } from './enforcement/engine.ts'
import { createViews } from './enforcement/evaluate.ts'
import { createExplain } from './explain/explain.ts'
import { createEnforcementImport } from './enforcement/import.ts'
import { createEnforcementRetention } from './enforcement/retention.ts'
import { createEnforcementRoutes } from './enforcement/routes.ts'
import { createReasonFor } from './enforcement/reason.ts'
import { createEnforcementStore } from './enforcement/store.ts'
import { createExplainRoutes } from './explain/routes.ts'
import { createFindRules, type FindRules } from './page.ts'
import { createRuleChanges } from './changes.ts'
import { createRegistration } from './registration.ts'
import { referenceRoutes } from './reference-routes.ts'
import { reviewRules } from './review.ts'
import { createRuleRoutes } from './routes.ts'
import type { RulesPorts } from './ports.ts'
import { createRuleService } from './service.ts'
import { createRuleStore } from './store.ts'
import type { Rule, RuleEnforcement } from './types.ts'
import type { TemplateReader } from '../../core/template-reader.ts'

export interface Rules extends Module, RuleKeeps {
  /** Whether an enabled rule is bound to the trigger. */
  hasRules(triggerId: string): boolean
  /** References of the rules of the trigger that the caller can view, enabled or not, sorted. */
  refsOf(triggerId: string, rights: Rights): string[]
  /** By id. */
  find(id: string): Rule | undefined
  /** By id or reference. @throws CONTENT_NOT_FOUND */
  get(refOrId: string): Rule
  readonly list: FindRules
  /** The newest enforcement of a rule. */
  lastEnforcementOf(ruleId: string): RuleEnforcement | undefined
  /** A digest that differs after each change of the enabled rules of the trigger. */
  versionOf(triggerId: string): string
  /** Whom a rule notifies; undefined: it is gone. */
  notifying(id: string): { ref: string; pack: string; notify: Notify | undefined; action: string } | undefined
  /** Registers the rules of a pack. Ids stay; `enabled` is set from the file. */
  registerRules(content: PackDefinitions): Promise<Registration>
}

export interface RulesDeps extends RulesPorts {
  database: Database
  bus: Bus
  log: Log
  metrics: Metrics
  actions: Actions
  executions: Executions
  triggers: Triggers
  traces: Traces
  readonly rightsOf: (user: string, scopes?: readonly Scope[]) => Rights
  /** Scope of rule templates besides the payload. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  templateThread: TemplateThread
  settings: {
    /** User that runs the actions of rules and owns the rules of packs. */
    systemUser: string
    maxPageSize: number
    /** `api.mask_secrets` and `log.mask_secrets` */
    maskSecrets: boolean
    cascade: CascadeLimits
  }
}

export function createRules(deps: RulesDeps): Rules {
  const {
    database,
    bus,
    log,
    metrics,
    actions,
    executions,
    triggers,
    traces,
    templates,
    templateThread,
    packConfigs,
    settings,
  } = deps
  const { systemUser, maskSecrets, maxPageSize } = settings
  const store = createRuleStore(database)
  const enforcements = createEnforcementStore(database)
  const bindings = createBindings({ store, bus, triggers })
  const changes = createRuleChanges({ database, store, triggers, jobs: deps.jobs })
  const service = createRuleService({ changes, store, actions, triggers, log, maskSecrets, systemUser })
  const find = createFindRules({ store, triggers })
  const viewsFor = createViews({ templates, rightsOf: deps.rightsOf, systemUser })
  const reasonFor = createReasonFor(triggers)
  const strangerOf = createStrangerOf(deps.rightsOf, systemUser)
  const enforcer = createEnforcer({
    store: enforcements,
    actions,
    executions,
    traces,
    packConfigs,
    templateThread,
    strangerOf,
    systemUser,
    cascade: settings.cascade,
  })
  const engine = createEngine({ bindings, enforcer, triggers, executions, viewsFor, database, bus, log, metrics })
  const explain = createExplain({
    store,
    enforcements,
    service,
    actions,
    triggers,
    traces,
    templates,
    viewsFor,
    reasonFor,
    packConfigs,
    templateThread,
    strangerOf,
    systemUser,
  })
  auditEnforcements(bus, log)
  let isActive = false
  let review: Promise<void> | undefined

  return {
    name: 'rules',
    gauges: [
      {
        key: 'rulesengine.queue.trigger',
        about: 'Trigger instances that wait for rule evaluation.',
        read: () => triggers.pendingCount(),
      },
    ],
    routes: [
      ...createRuleRoutes({
        service,
        find,
        enforcements,
        actions,
        executions,
        triggers,
        reasonFor,
        jobs: deps.jobs,
        timesOf: deps.timesOf,
        maxPageSize,
      }),
      ...createExplainRoutes({ explain }),
      ...createEnforcementRoutes({
        store: enforcements,
        rules: store,
        executions,
        triggers,
        importEnforcements: createEnforcementImport({ store: enforcements, database, log }),
        reasonFor,
        maxPageSize,
      }),
      ...referenceRoutes,
    ],
    retention: [createEnforcementRetention({ store: enforcements, database })],
    hasRules: (triggerId) => bindings.has(triggerId),
    refsOf: (triggerId, rights) =>
      store
        .namesOf(triggerId)
        .filter((rule) => rights.may('rule_view', ruleResource(rule)))
        .map(({ ref }) => ref),
    find: (id) => store.find(id),
    get: (refOrId) => service.get(refOrId),
    list: find,
    keeps: () => store.keeps(),
    lastEnforcementOf: (ruleId) => enforcements.lastOf([ruleId]).get(ruleId),
    versionOf: (triggerId) => bindings.versionOf(triggerId),
    notifying(id) {
      const rule = store.find(id)
      return rule && { ref: rule.ref, pack: rule.pack, notify: rule.notify, action: rule.action.ref }
    },
    registerRules: createRegistration({ store, changes, triggers, log, systemUser }),
    start() {
      engine.start()
      isActive = true
      review = reviewRules({ store, log, isActive: () => isActive }).catch((error: unknown) => {
        log.error('rules.review_failed', 'Could not look through the stored rules', { error })
      })
      return Promise.resolve()
    },
    async stop() {
      isActive = false
      await review
      await engine.stop()
    },
  }
}

export { ruleFilters } from './list.ts'
export { resourceOf } from './service.ts'
export { expectationProperties } from './expectation.ts'
export { jobStateProperties, partsOf, type JobState } from './types.ts'
