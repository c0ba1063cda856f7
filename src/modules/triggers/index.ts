/** Triggers: kinds of event, those with parameters, and every occurrence of one (contract 05, 5.1–5.4 and 5.9). */
import type { Bus } from '../../bus/index.ts'
import type { Database } from '../../db/index.ts'
import type { Encryption } from '../../core/encryption.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { Traces } from '../traces/index.ts'
import { createCatalogue } from './catalogue.ts'
import { createPendingCount } from './pending-count.ts'
import { createReaction } from './reaction.ts'
import { createRetention } from './retention.ts'
import { createRoutes } from './routes.ts'
import { createTriggersService } from './service.ts'
import { createTriggerStore } from './store.ts'
import { createTypesService } from './types-service.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { PlanReaction } from '../executions/ports.ts'
import type { TriggerService } from './ports.ts'

export interface Triggers extends Module, TriggerService {
  /** What an execution brings about here: ActionTrigger and notifications. Never throws. */
  planReaction: PlanReaction
  /** For packs. Ids stay; a type that rules use stays as well when its file is gone. */
  registerTypes(content: PackDefinitions): Promise<Registration>
  /** Ids of the traces of instances that no rule has looked at yet. */
  openTraces(): string[]
}

export interface TriggersDeps {
  database: Database
  bus: Bus
  log: Log
  traces: Traces
  encryption: Encryption
  /** Whether an enabled rule is bound to the trigger; true while that is not known yet. */
  readonly hasRules: (triggerId: string) => boolean
  /** What the texts of notifications may read, besides the execution. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  settings: {
    /** `system.validate_trigger_parameters` */
    validateParameters: boolean
    /** `system.validate_trigger_payload` */
    validatePayload: boolean
    /** `action_sensor.emit_when`; empty when `action_sensor.enable` is off. */
    emitWhen: readonly string[]
    /** `actionrunner.queue_limit`: how many instances may wait. */
    queueLimit: number
    /** `api.max_page_size` */
    maxPageSize: number
  }
}

export function createTriggers(deps: TriggersDeps): Triggers {
  const { database, bus, log, traces, encryption, settings } = deps
  const store = createTriggerStore(database)
  const catalogue = createCatalogue({ store, bus, encryption, log })
  const pendingCount = createPendingCount(bus, () => store.pendingCount())
  const service = createTriggersService({
    database,
    store,
    catalogue,
    traces,
    encryption,
    pendingCount,
    hasRules: deps.hasRules,
    settings,
  })
  const types = createTypesService({ database, store, catalogue, service })
  return {
    ...service,
    name: 'triggers',
    routes: createRoutes({ store, catalogue, service, types, log, settings }),
    planReaction: createReaction({
      log,
      catalogue,
      service,
      templates: deps.templates,
      emitWhen: settings.emitWhen,
    }),
    registerTypes: (content) => types.registerTypes(content),
    openTraces: () => store.pendingTraces(),
    retention: [createRetention({ store, database })],
    async start() {
      catalogue.load()
      await types.registerBuiltin()
    },
  }
}

export { isTimerType, readTimer, timerTypes, type TimerSchedule, type TimerType } from './timer-parameters.ts'

export { webhookTypeRef } from './builtin.ts'
export type { SignatureParameters, SignatureScheme } from './types.ts'
export { triggerProperties } from './routes.ts'
export { genericHook, hookOf, standardKey, standardPrefix, takenHeaders, traceTagHeader } from './webhook-parameters.ts'
