/**
 * Sends what the rows owe, destination by destination: one message at a time, the oldest first. A slow or dead
 * destination holds up nobody else. A later message of a job waits for an earlier one, others pass it.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Bus } from '../../bus/index.ts'
import type { Clock } from '../../core/clock.ts'
import { isStorageFailure } from '../../core/errors.ts'
import { newId } from '../../core/ids.ts'
import type { Metrics } from '../../core/metrics.ts'
import { formatMicros, microsOf } from '../../core/time.ts'
import type { Database, Step } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Deliver, Outcome } from './delivery.ts'
import type { Destination } from './definition.ts'
import type { Destinations } from './destinations.ts'
import type { NotificationsSettings } from './settings.ts'
import type { NotificationStore } from './store.ts'
import type { Notification } from './types.ts'

const MINUTE_MS = 60_000
const FIRST_RETRY_SECONDS = 5
const MAX_RETRY_SECONDS = 900
/** Rows of a destination that are looked at together. */
const WINDOW = 500
/** Notifications that one digest lists. */
const MAX_LISTED = 50
/** A missed wake-up costs no more. */
const POLL_MS = 60_000
const STORE_AGAIN_MS = 1000
/** Time for messages that are being sent when the server stops. */
const STOP_MS = 5000

/** What is known of a destination since the start. */
export interface Health {
  state: 'ok' | 'failing' | 'unused'
  lastError?: string
  lastSentAt?: string
}

export interface Sender {
  start(): Promise<void>
  stop(): Promise<void>
  /** Looks again at what waits, as after destinations have changed. */
  wakeAll(): void
  /** Waiting notifications of a destination; without a name: of all. */
  waiting(destination?: string): number
  healthOf(destination: string): Health
  /** Destinations whose last attempt failed. */
  failing(): string[]
  /** Remembers the outcome of a test. */
  note(destination: string, outcome: Outcome): void
}

interface Worker {
  wake(): void
  running: Promise<void>
}

export function createSender(deps: {
  store: NotificationStore
  database: Pick<Database, 'write'>
  bus: Bus
  destinations: Pick<Destinations, 'find'>
  readonly deliver: Deliver
  log: Log
  metrics: Metrics
  clock: Clock
  settings: NotificationsSettings
  /** From 0 to 1; tests replace it. */
  readonly random?: () => number
}): Sender {
  const { store, database, destinations, deliver, log, metrics, clock, settings, random = Math.random } = deps
  const workers = new Map<string, Worker>()
  const counts = new Map<string, number>()
  const health = new Map<string, Health>()
  const stopping = new AbortController()
  const aborted = new AbortController()
  let isStarted = false

  const at = (): string => formatMicros(clock.now())
  const inSeconds = (seconds: number): string => formatMicros(clock.now() + Math.round(seconds * 1_000_000))
  const count = (destination: string, by: number): void => {
    counts.set(destination, Math.max(0, (counts.get(destination) ?? 0) + by))
  }

  deps.bus.subscribe('notification.planned', ({ destination }) => {
    count(destination, 1)
    wake(destination)
  })

  function wake(destination: string): void {
    if (!isStarted || stopping.signal.aborted) return
    const worker = workers.get(destination)
    if (worker !== undefined) worker.wake()
    else work(destination)
  }

  function work(destination: string): void {
    let isWoken = false
    let end: (() => void) | undefined
    const worker: Worker = {
      wake() {
        isWoken = true
        end?.()
      },
      running: Promise.resolve(),
    }
    workers.set(destination, worker)
    const recent: number[] = []
    worker.running = (async () => {
      for (;;) {
        isWoken = false
        const pauseMs = await step(destination, recent).catch((error: unknown) => {
          log.error('notification.sender_failed', 'Could not look for notifications to send', { destination, error })
          return STORE_AGAIN_MS
        })
        if (stopping.signal.aborted) return
        if (pauseMs === undefined && recent.length === 0) break
        if (pauseMs === 0 || isWoken) continue
        await new Promise<void>((resolve) => {
          const cancel = clock.wait(Math.min(pauseMs ?? MINUTE_MS, POLL_MS), resolve)
          end = () => {
            cancel()
            resolve()
          }
        })
        end = undefined
        if (stopping.signal.aborted) return
      }
    })().finally(() => {
      workers.delete(destination)
      // Woken after its last look.
      if (isWoken) wake(destination)
    })
  }

  /** Does one thing for a destination. @returns milliseconds until there is more to do; 0: at once; undefined: nothing waits */
  async function step(name: string, recent: number[]): Promise<number | undefined> {
    while (recent.length > 0 && clock.monotonic() - (recent[0] ?? 0) >= MINUTE_MS) recent.shift()
    const waiting = store.pending(name, WINDOW)
    if (waiting.length === 0) {
      counts.delete(name)
      return undefined
    }
    const destination = destinations.find(name)
    if (destination === undefined) {
      await endAll(waiting, 'failed', `There is no destination "${name}" any more`)
      return 0
    }
    const { ready, nextMicros } = split(waiting)
    const allowed = await withinRate(ready, destination)
    if (allowed === undefined) return 0
    const [first] = allowed
    if (first === undefined) {
      return nextMicros === undefined ? POLL_MS : Math.max(1, Math.ceil((nextMicros - clock.now()) / 1000))
    }
    const threshold = destination.channel.isDigested ? settings.digestThreshold : 0
    const own = allowed.filter(({ occasion }) => occasion === 'digest')
    const room = threshold === 0 ? Infinity : threshold - recent.length
    if (own.length === 0 && allowed.length > room) {
      if (room <= 0) return MINUTE_MS - (clock.monotonic() - (recent[0] ?? 0)) + 1
      const parts = allowed.filter((each) => recipientsOf(each) === recipientsOf(first))
      if (parts.length > 1) {
        await digest(destination, parts)
        return 0
      }
    }
    if (threshold > 0) recent.push(clock.monotonic())
    await send(own[0] ?? first, destination)
    return stopping.signal.aborted ? undefined : 0
  }

  /** Those to send now, and when the next one is due. Of each job only the oldest counts. */
  function split(waiting: readonly Notification[]): { ready: Notification[]; nextMicros: number | undefined } {
    const time = at()
    const held = new Set<string>()
    const ready: Notification[] = []
    let next: string | undefined
    for (const notification of waiting) {
      const { job, due_at: due } = notification
      if (job !== '' && held.has(job)) continue
      if (due <= time) ready.push(notification)
      else {
        held.add(job)
        if (next === undefined || due < next) next = due
      }
    }
    return { ready, nextMicros: next === undefined ? undefined : microsOf(next) }
  }

  /** @returns undefined: some were too many for their job, so look again. A recovery always passes. */
  async function withinRate(
    ready: readonly Notification[],
    { name, rateLimit }: Destination,
  ): Promise<readonly Notification[] | undefined> {
    if (rateLimit === undefined) return ready
    const since = formatMicros(clock.now() - Math.round(rateLimit.perSeconds * 1_000_000))
    const sent = new Map<string, number>()
    const beyond = ready.filter(({ job, occasion }) => {
      if (job === '' || occasion === 'recovered') return false
      const before = sent.get(job) ?? store.countSent(name, job, since)
      sent.set(job, before + 1)
      return before >= rateLimit.count
    })
    if (beyond.length === 0) return ready
    await endAll(
      beyond,
      'suppressed',
      `More than ${rateLimit.count} messages of this job in ${rateLimit.perSeconds} seconds (rate_limit)`,
    )
    return undefined
  }

  async function endAll(some: readonly Notification[], status: 'failed' | 'suppressed', error: string): Promise<void> {
    await keep(some.map(({ id }) => store.change(id, 'pending', { status, error })))
    for (const { destination } of some) {
      count(destination, -1)
      metrics.count('notification.ended', { destination, status })
    }
  }

  /** One message in the place of many with the same recipients. */
  async function digest({ name }: Destination, parts: readonly Notification[]): Promise<void> {
    const time = at()
    const to = parts[0]?.content.to
    const listed = parts.slice(0, MAX_LISTED)
    const notification: Notification = {
      id: newId(),
      destination: name,
      occasion: 'digest',
      status: 'pending',
      job: '',
      rule: null,
      execution: null,
      attempts: 0,
      due_at: time,
      created_at: time,
      queued_at: time,
      sent_at: null,
      error: null,
      digest: null,
      content: {
        at: time,
        ...(to === undefined ? {} : { to }),
        items: listed.map(({ id, occasion, job, execution, content }) => ({
          id,
          condition: occasion,
          job,
          ...(execution === null ? {} : { execution }),
          at: content.at,
        })),
        more: parts.length - listed.length,
      },
    }
    await keep([
      store.insert(notification),
      store.digest(
        parts.map(({ id }) => id),
        notification.id,
        time,
      ),
    ])
    count(name, 1 - parts.length)
    for (const _ of parts) metrics.count('notification.ended', { destination: name, status: 'digested' })
  }

  async function send(notification: Notification, destination: Destination): Promise<void> {
    const { id } = notification
    const attempts = notification.attempts + 1
    // Before it is sent: after a crash only what may be unanswered is sent again.
    await keep([store.change(id, 'pending', { status: 'sending', attempts })])
    const outcome = await deliver(notification, destination, aborted.signal)
    if (!outcome.sent && aborted.signal.aborted) return
    note(destination.name, outcome)
    const { to, ends } = nextOf(notification, attempts, outcome)
    await keep([store.change(id, 'sending', to)])
    const about = { notification_id: id, destination: destination.name, attempts }
    if (ends) {
      count(destination.name, -1)
      metrics.count('notification.ended', { destination: destination.name, status: outcome.sent ? 'sent' : 'failed' })
    }
    if (outcome.sent) log.info('notification.sent', `Notification sent to "${destination.name}"`, about)
    else {
      const what = ends ? 'Could not send a notification' : 'Could not send a notification; svc tries again'
      log.warning('notification.failed', `${what}: ${outcome.message}`, about)
    }
  }

  function nextOf(
    notification: Notification,
    attempts: number,
    outcome: Outcome,
  ): { to: Parameters<NotificationStore['change']>[2]; ends: boolean } {
    if (outcome.sent) return { to: { status: 'sent', sent_at: at(), error: null }, ends: true }
    const age = (clock.now() - microsOf(notification.queued_at)) / 1_000_000
    // Half of the pause is random, so that what failed together is not tried together.
    const pause = Math.min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** Math.min(attempts - 1, 20))
    const wait = Math.max(pause / 2 + (random() * pause) / 2, Math.min(outcome.retryAfterSeconds ?? 0, 3600))
    const isOver = outcome.isFinal || attempts >= settings.maxAttempts || age + wait > settings.maxAgeSeconds
    return isOver
      ? { to: { status: 'failed', error: outcome.message }, ends: true }
      : { to: { status: 'pending', due_at: inSeconds(wait), error: outcome.message }, ends: false }
  }

  function note(destination: string, outcome: Outcome): void {
    const before = health.get(destination)
    health.set(
      destination,
      outcome.sent
        ? { state: 'ok', lastSentAt: at() }
        : {
            state: 'failing',
            lastError: outcome.message,
            ...(before?.lastSentAt === undefined ? {} : { lastSentAt: before.lastSentAt }),
          },
    )
  }

  /** What has been sent must be stored, or it would be sent again: so this goes on until the server stops. */
  async function keep(steps: Step[]): Promise<void> {
    for (;;) {
      try {
        await database.write({ steps, facts: [] })
        return
      } catch (error) {
        if (aborted.signal.aborted || !isStorageFailure(error)) throw error
        log.error('notification.not_stored', 'Could not store the state of a notification: trying again', { error })
        await delay(STORE_AGAIN_MS, undefined, { signal: aborted.signal }).catch(() => undefined)
      }
    }
  }

  return {
    async start() {
      if (isStarted) return
      await database.write({ steps: [store.resume()], facts: [] })
      for (const [destination, waiting] of store.waiting()) counts.set(destination, waiting)
      isStarted = true
      for (const destination of counts.keys()) wake(destination)
    },
    async stop() {
      stopping.abort()
      const all = [...workers.values()]
      for (const worker of all) worker.wake()
      const patience = new AbortController()
      const ended = Promise.allSettled(all.map(({ running }) => running))
      await Promise.race([ended, delay(STOP_MS, undefined, { signal: patience.signal }).catch(() => undefined)])
      patience.abort()
      aborted.abort()
      await ended
    },
    wakeAll() {
      for (const destination of counts.keys()) wake(destination)
    },
    waiting: (destination) =>
      destination === undefined ? [...counts.values()].reduce((sum, n) => sum + n, 0) : (counts.get(destination) ?? 0),
    healthOf: (destination) => health.get(destination) ?? { state: 'unused' },
    failing: () => [...health].filter(([, { state }]) => state === 'failing').map(([name]) => name),
    note,
  }
}

const recipientsOf = ({ content }: Notification): string => (content.to ?? []).join(',')
