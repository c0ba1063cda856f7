/** Webhooks: requests from other systems that svc stores as trigger instances (contract 06). */
import type { Bus } from '../../bus/index.ts'
import type { Database } from '../../db/index.ts'
import type { HttpGet } from '../../runners/index.ts'
import type { Rights } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { Executions } from '../executions/index.ts'
import type { SignatureParameters, Triggers } from '../triggers/index.ts'
import { createFetchAmazon } from './amazon.ts'
import { createCertificates } from './certificates.ts'
import { createDeliveries } from './deliveries.ts'
import { createRegistry } from './registry.ts'
import { createDeliveryAdmission } from './admission.ts'
import { createDispatch } from './dispatch.ts'
import { createWebhookRoutes } from './routes.ts'
import type { Verifier } from './signatures.ts'
import { createSecretReader } from './secrets.ts'
import { createWebhookService } from './service.ts'
import { createSnsVerifier } from './sns.ts'
import { createDeliveryStore } from './store.ts'
import { createWaits } from './waits.ts'
import type { TemplateReader } from '../../core/template-reader.ts'

export type Webhooks = Module

export interface WebhooksDeps {
  database: Database
  bus: Bus
  log: Log
  triggers: Triggers
  executions: Executions
  /** See `Rules.versionOf`. */
  readonly versionOf: (triggerId: string) => string
  /** See `Rules.refsOf`. */
  readonly rulesOf: (triggerId: string, rights: Rights) => string[]
  /** Scope of signature secrets that are templates. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  /** Reads certificates of signatures, and confirms subscriptions. */
  readonly get: HttpGet
  settings: {
    /** User whose permissions apply to reading secrets, besides those of the author. */
    systemUser: string
    /** `actionrunner.queue_limit`: maximum number of pending trigger instances. */
    queueLimit: number
  }
}

/** Requests with `Prefer: wait` that wait at the same time. */
const MAX_WAITING = 1000

export function createWebhooks(deps: WebhooksDeps): Webhooks {
  const { database, bus, log, triggers, executions, settings } = deps
  const readSecret = createSecretReader((author) =>
    deps.templates({
      user: settings.systemUser,
      ...(author === undefined ? {} : { author: author.user }),
      ...(author?.scopes === undefined ? {} : { scopes: author.scopes }),
    }),
  )
  const stopped = new AbortController()
  const sns = {
    certificates: createCertificates(createFetchAmazon(deps.get, stopped.signal), () => performance.now()),
    confirm: createFetchAmazon(deps.get, stopped.signal),
    log,
  }
  const verifySns = (parameters: SignatureParameters): Verifier => createSnsVerifier(parameters, sns)
  const registry = createRegistry({ triggers, bus, log, readSecret, verifySns })
  const waits = createWaits({ bus, triggers, executions, maxWaiting: MAX_WAITING })
  const dispatch = createDispatch({
    deliveries: createDeliveries(createDeliveryStore(database)),
    waits,
    database,
    triggers,
    executions,
    versionOf: deps.versionOf,
    queueLimit: settings.queueLimit,
  })
  const service = createWebhookService({
    registry,
    admit: createDeliveryAdmission({ log }),
    dispatch,
    triggers,
    rulesOf: deps.rulesOf,
    log,
  })
  return {
    name: 'webhooks',
    routes: createWebhookRoutes(service),
    async start() {
      registry.start()
      waits.start()
    },
    async stop() {
      stopped.abort()
      waits.stop()
      registry.stop()
    },
  }
}
