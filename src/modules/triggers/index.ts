/** Trigger types, triggers and trigger instances (contract 05, 5.1–5.4 and 5.9). */
import { createHash } from 'node:crypto'
import type { Bus } from '../../bus/index.ts'
import type { Database } from '../../db/index.ts'
import type { Encryption } from '../../core/encryption.ts'
import { writeJson } from '../../lib/json/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { Traces } from '../traces/index.ts'
import { noCompat } from '../../core/compat/index.ts'
import { createCatalogue } from './definitions/catalogue.ts'
import { createPendingCount } from './instances/pending-count.ts'
import { createTriggerReaction } from './reactions/reaction.ts'
import { createInstanceImport } from './instances/import.ts'
import { createInstanceRetention } from './instances/retention.ts'
import { createTypeRoutes } from './definitions/type-routes.ts'
import { createTriggerRoutes } from './definitions/trigger-routes.ts'
import { createInstanceRoutes } from './instances/routes.ts'
import type { TriggersSettings } from './settings.ts'
import { createTriggersService } from './service.ts'
import { createDefinitionStore } from './definitions/store.ts'
import { createInstanceStore } from './instances/store.ts'
import { createSealedHeaders } from './instances/sealed-headers.ts'
import { createTriggerChanges } from './definitions/trigger-changes.ts'
import { createTypeChanges } from './definitions/type-changes.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { PlanReaction } from '../executions/ports.ts'
import type { TriggerService, TriggersPorts } from './ports.ts'

export interface Triggers extends Module, TriggerService {
  /** Triggers of an execution: ActionTrigger and notifications. Never throws. */
  planReaction: PlanReaction
  /** Registers the types of a pack. Keeps ids. A type that rules use stays after its file is deleted. */
  registerTypes(content: PackDefinitions): Promise<Registration>
  /** A digest that differs after each change of what rules can be bound to. */
  typesVersion(): string
  /** Ids of the traces of pending instances. */
  openTraces(): string[]
  /** The execution whose end dispatched an instance; undefined: another source dispatched it. */
  causeOf(instanceId: string): string | undefined
}

export interface TriggersDeps extends TriggersPorts {
  database: Database
  bus: Bus
  log: Log
  traces: Traces
  encryption: Encryption
  /** Variables for the texts of notifications, besides the execution. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  settings: TriggersSettings
}

export function createTriggers(deps: TriggersDeps): Triggers {
  const { database, bus, log, traces, encryption, settings } = deps
  const { maxPageSize, queueLimit } = settings
  const store = createDefinitionStore(database)
  const instances = createInstanceStore(database)
  const catalogue = createCatalogue({ store, bus, encryption, log, compat: settings.compat ?? noCompat })
  const pendingCount = createPendingCount(bus, () => instances.pendingCount())
  const sealedHeaders = createSealedHeaders(encryption)
  const service = createTriggersService({
    database,
    store,
    instances,
    catalogue,
    traces,
    encryption,
    sealedHeaders,
    pendingCount,
    hasRules: deps.hasRules,
    settings,
  })
  const typeChanges = createTypeChanges({ database, store, catalogue, service })
  const triggerChanges = createTriggerChanges({ database, store, catalogue, service })
  return {
    ...service,
    name: 'triggers',
    routes: [
      ...createTypeRoutes({ catalogue, changes: typeChanges, log, maxPageSize }),
      ...createTriggerRoutes({ catalogue, changes: triggerChanges, service, log }),
      ...createInstanceRoutes({
        store: instances,
        catalogue,
        service,
        importInstances: createInstanceImport({ store: instances, catalogue, sealedHeaders, database, log }),
        log,
        maxPageSize,
        queueLimit,
      }),
    ],
    planReaction: createTriggerReaction({
      log,
      catalogue,
      service,
      templates: deps.templates,
      emitWhen: settings.emitWhen,
      webUrl: settings.webUrl,
    }),
    registerTypes: (content) => typeChanges.registerTypes(content),
    typesVersion() {
      const types = [...catalogue.types()].map(({ ref, parameters_schema: schema }) => writeJson([ref, schema]))
      return createHash('sha256').update(writeJson(types.sort())).digest('base64url')
    },
    openTraces: () => instances.pendingTraces(),
    causeOf: (instanceId) => executionIn(service.findInstance(instanceId)?.payload),
    retention: [createInstanceRetention({ store: instances, database })],
    async start() {
      catalogue.load()
      await typeChanges.registerBuiltin()
    },
  }
}

/** The execution id in the payload of a trigger that executions dispatch. */
function executionIn(payload: unknown): string | undefined {
  const id = typeof payload === 'object' && payload !== null && 'execution_id' in payload && payload.execution_id
  return typeof id === 'string' ? id : undefined
}

export {
  isTimerType,
  readTimer,
  timerTypes,
  timeZoneOf,
  type TimerSchedule,
  type TimerType,
} from './builtin/timer-parameters.ts'

export { actionTriggerRef, internalTypes, missedRef, subjectOf, webhookTypeRef } from './builtin/types.ts'
export {
  visiblePayload,
  type VisibilityRights,
  type VisiblePayload,
  type Withheld,
} from './instances/visible-payload.ts'
export { isCredentialHeader } from './instances/credential-headers.ts'
export type { SignatureParameters, SignatureScheme } from './types.ts'
export {
  DEFAULT_NEXT_RUNS,
  MAX_NEXT_RUNS,
  TimerPreview,
  TimerPreviewRequest,
  TimerRecord,
  WebhookRecord,
} from './types.ts'
export {
  genericHook,
  hookOf,
  problemOfWebhook,
  standardKey,
  standardPrefix,
  takenHeaders,
  traceTagHeader,
} from './builtin/webhook-parameters.ts'
export { triggersSettings } from './settings.ts'
