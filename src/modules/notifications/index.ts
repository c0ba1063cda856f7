/** Notifications: messages to people about jobs that failed, recovered, or were missed. */
import type { Bus } from '../../bus/index.ts'
import type { Clock } from '../../core/clock.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Module } from '../../core/module.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { TemplateScope } from '../../lib/template/index.ts'
import type { HttpPost, RunHelper } from '../../runners/index.ts'
import type { Actions } from '../actions/index.ts'
import type { Rules } from '../rules/index.ts'
import { createDelivery } from './delivery.ts'
import { createDestinations, type Destinations } from './destinations.ts'
import { createPlanning, type Planning } from './plan.ts'
import { createNotificationRetention } from './retention.ts'
import { createNotificationRoutes } from './routes.ts'
import { createRuleCache } from './rule-cache.ts'
import { createSender } from './sender.ts'
import { createNotificationService } from './service.ts'
import type { NotificationsSettings } from './settings.ts'
import { createNotificationStore } from './store.ts'

export { notificationsSettings } from './settings.ts'

/** `usePack` and `forgetPack`: for packs. */
export interface Notifications extends Module, Planning, Pick<Destinations, 'usePack' | 'forgetPack'> {}

export interface NotificationsDeps {
  database: Database
  bus: Bus
  log: Log
  metrics: Metrics
  clock: Clock
  rules: Pick<Rules, 'notifying'>
  actions: Pick<Actions, 'find'>
  /** What templates of destinations may read. */
  readonly templates: (reader: TemplateReader) => TemplateScope
  readonly post: HttpPost
  readonly runHelper: RunHelper
  /** Address of the web client. */
  readonly webUrl: () => string
  settings: NotificationsSettings
}

export function createNotifications(deps: NotificationsDeps): Notifications {
  const { database, bus, log, rules, actions, settings, webUrl } = deps
  const { systemUser, basePath, maxPageSize } = settings
  const store = createNotificationStore(database)
  const destinations = createDestinations({ basePath, log })
  const deliver = createDelivery({ ...deps, systemUser })
  const sender = createSender({ ...deps, store, destinations, deliver })
  const service = createNotificationService({ store, database, destinations, sender, deliver, webUrl, log, settings })
  const planning = createPlanning({
    store,
    destinations,
    ruleOf: createRuleCache(bus, (id) => rules.notifying(id)),
    notifyOfAction: (ref) => actions.find(ref),
    waiting: (destination) => sender.waiting(destination),
    log,
    settings,
  })

  return {
    name: 'notifications',
    isOff: !settings.enabled,
    routes: createNotificationRoutes({ service, store, maxPageSize }),
    retention: [createNotificationRetention({ store, database })],
    gauges: [
      { key: 'notifications.pending', about: 'Notifications that wait to be sent.', read: () => sender.waiting() },
      {
        key: 'notifications.failing_destinations',
        about: 'Destinations whose last attempt failed.',
        read: () => sender.failing().length,
      },
    ],
    attention() {
      const failing = sender.failing()
      if (failing.length === 0) return []
      const what = failing.length === 1 ? `destination "${failing[0] ?? ''}"` : `${failing.length} destinations`
      return [`The last message did not reach the ${what} of notifications. \`svc notify destinations\` says why.`]
    },
    ...planning,
    async usePack(pack, folder) {
      const problems = await destinations.usePack(pack, folder)
      sender.wakeAll()
      return problems
    },
    forgetPack: (pack) => destinations.forgetPack(pack),
    async start() {
      await destinations.readSite()
      if (settings.enabled) await sender.start()
    },
    async reload() {
      await destinations.reload()
      sender.wakeAll()
    },
    stop: () => sender.stop(),
  }
}
