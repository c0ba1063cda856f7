/** What can be done with notifications and destinations: read, replay, test. */
import { isSingleTemplate } from './definition.ts'
import { namedNotFound, notificationBusy, resourceNotFound } from '../../core/errors.ts'
import { newId } from '../../core/ids.ts'
import { now } from '../../core/time.ts'
import { executionAddress } from '../../core/web-address.ts'
import { executionResource, type Resource } from '../../core/permissions.ts'
import { Conflict, type Database } from '../../db/index.ts'
import { aboutCaller, type Caller } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { MASK } from '../../lib/schema/index.ts'
import type { Deliver } from './delivery.ts'
import type { Destination } from './definition.ts'
import type { Destinations } from './destinations.ts'
import { titleOf } from './message.ts'
import type { Sender } from './sender.ts'
import type { NotificationsSettings } from './settings.ts'
import type { NotificationStore } from './store.ts'
import type { DestinationRecord, Notification, NotificationRecord, TestOutcome } from './types.ts'

export interface NotificationService {
  /** @throws RESOURCE_NOT_FOUND */
  get(id: string): Notification
  record(notification: Notification): NotificationRecord
  /** What the caller needs permissions on. */
  resourceOf(notification: Notification): Resource
  /** Sends it again, from the beginning, with the same id. @throws RESOURCE_NOT_FOUND, NOTIFICATION_BUSY */
  replay(caller: Caller, id: string): Promise<Notification>
  destinations(): DestinationRecord[]
  /** @throws NAMED_NOT_FOUND */
  destination(name: string): DestinationRecord
  /** Sends a message at once, and says what came of it. @throws NAMED_NOT_FOUND */
  test(caller: Caller, name: string): Promise<TestOutcome>
  /** Of a test that is over. @throws RESOURCE_NOT_FOUND */
  outcomeOf(id: string): TestOutcome
}

export function createNotificationService(deps: {
  store: NotificationStore
  database: Pick<Database, 'write'>
  destinations: Destinations
  sender: Pick<Sender, 'waiting' | 'healthOf' | 'note'>
  readonly deliver: Deliver
  readonly webUrl: () => string
  log: Log
  settings: Pick<NotificationsSettings, 'globals' | 'on'>
}): NotificationService {
  const { store, database, destinations, sender, deliver, log, settings } = deps

  function get(id: string): Notification {
    const found = store.find(id)
    if (found === undefined) throw resourceNotFound(id)
    return found
  }

  function find(name: string): Destination {
    const found = destinations.find(name)
    if (found === undefined) throw namedNotFound(name)
    return found
  }

  function describe(destination: Destination): DestinationRecord {
    const { name, description, channel, pack, file, on, warnings } = destination
    const { state, lastError, lastSentAt } = sender.healthOf(name)
    const isGlobal = settings.globals.some((each) => destinations.find(each)?.name === name)
    return {
      name,
      description,
      channel: channel.kind,
      ...(pack === undefined ? {} : { pack }),
      file,
      on: [...(on ?? settings.on)],
      is_global: isGlobal,
      settings: shownSettings(destination),
      state,
      ...(lastError === undefined ? {} : { last_error: lastError }),
      ...(lastSentAt === undefined ? {} : { last_sent_at: lastSentAt }),
      pending: sender.waiting(name),
      warnings: [...warnings],
    }
  }

  return {
    get,
    record(notification) {
      const { id, destination, occasion, status, job, rule, execution, attempts, created_at, due_at, sent_at } =
        notification
      const { error, digest, content } = notification
      const web = deps.webUrl()
      return {
        id,
        destination,
        condition: occasion,
        status,
        title: titleOf(notification),
        ...(job === '' ? {} : { job }),
        ...(rule === null ? {} : { rule }),
        ...(content.action === undefined ? {} : { action: content.action }),
        ...(execution === null ? {} : { execution, web_url: executionAddress(web, execution) }),
        ...(content.user === undefined ? {} : { user: content.user }),
        attempts,
        created_at,
        ...(status === 'pending' ? { due_at } : {}),
        ...(sent_at === null ? {} : { sent_at }),
        ...(error === null ? {} : { error }),
        ...(digest === null ? {} : { digest }),
      }
    },
    resourceOf: ({ execution, content: { action, user } }) =>
      // A test and a digest concern nobody's execution, or those of several: no grant on one opens them.
      action === undefined
        ? { uid: '' }
        : executionResource({ id: execution ?? '', action_ref: action, user: user ?? '' }),
    async replay(caller, id) {
      const { destination } = get(id)
      try {
        await database.write({
          steps: [store.replay(id, now())],
          facts: [{ name: 'notification.planned', payload: { destination } }],
          subject: id,
        })
      } catch (error) {
        if (error instanceof Conflict) throw notificationBusy(id)
        throw error
      }
      log.audit('notification.replayed', `Notification replayed. Notification.id=${id}`, {
        notification_id: id,
        destination,
        ...aboutCaller(caller),
      })
      return get(id)
    },
    outcomeOf(id) {
      const { destination, status, error } = get(id)
      return { id, destination, sent: status === 'sent', message: error ?? 'sent' }
    },
    destinations: () => destinations.list().map(describe),
    destination: (name) => describe(find(name)),
    async test(caller, name) {
      const destination = find(name)
      const at = now()
      const about: Notification = {
        id: newId(),
        destination: destination.name,
        occasion: 'test',
        status: 'sending',
        job: '',
        rule: null,
        execution: null,
        attempts: 1,
        due_at: at,
        created_at: at,
        queued_at: at,
        sent_at: null,
        error: null,
        digest: null,
        content: { at, user: caller.principal.user },
      }
      const outcome = await deliver(about, destination)
      sender.note(destination.name, outcome)
      const { id } = about
      const ended: Notification = outcome.sent
        ? { ...about, status: 'sent', sent_at: now() }
        : { ...about, status: 'failed', error: outcome.message }
      await database.write({ steps: [store.insert(ended)], facts: [], subject: id })
      log.audit('notification.tested', `A test was sent to the destination "${destination.name}".`, {
        notification_id: id,
        destination: destination.name,
        sent: outcome.sent,
        ...aboutCaller(caller),
      })
      return { id, destination: destination.name, sent: outcome.sent, message: outcome.message }
    },
  }
}

/** A template names a secret and is none. */
function shownSettings({ channel, settings }: Destination): Record<string, unknown> {
  const secrets = new Set([...channel.secrets, 'url'])
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [
      name,
      secrets.has(name) && !isSingleTemplate(value) ? MASK : value,
    ]),
  )
}
