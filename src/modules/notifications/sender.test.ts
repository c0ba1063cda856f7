/** The sender on a real database, with a clock and destinations of the test. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../../../tests/helpers/database.ts'
import { TestClock } from '../../../tests/helpers/clock.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { fullOnly } from '../../../tests/helpers/tiers.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { Bus } from '../../bus/index.ts'
import { newId } from '../../core/ids.ts'
import { noMetrics } from '../../core/metrics.ts'
import { formatMicros } from '../../core/time.ts'
import type { Database } from '../../db/index.ts'
import { createLog } from '../../lib/log/log.ts'
import { readDestination, type Destination } from './definition.ts'
import type { Outcome } from './delivery.ts'
import { createSender, type Sender } from './sender.ts'
import { createNotificationStore, type NotificationStore } from './store.ts'
import type { Notification } from './types.ts'

let folder: TemporaryFolder
let database: Database
let bus: Bus
let store: NotificationStore
let clock: TestClock
let sender: Sender
/** What was sent: destination, occasion and job. */
let sent: string[]
let answer: (notification: Notification) => Outcome | Promise<Outcome>
const known = new Map<string, Destination>()
const logged = new TextSink()

const ok: Outcome = { sent: true, message: 'ok' }
const down: Outcome = { sent: false, message: 'down', isFinal: false, retryAfterSeconds: undefined }

function define(name: string, more: Record<string, unknown> = { channel: 'ntfy', topic: 'x' }): void {
  const outcome = readDestination({ name, ...more }, 'f', undefined)
  if ('destination' in outcome && outcome.destination !== undefined) known.set(name, outcome.destination)
}

function createIt(settings: Record<string, unknown> = {}): Sender {
  return createSender({
    store,
    database,
    bus,
    destinations: { find: (name) => known.get(name) },
    deliver: async (notification) => {
      const outcome = await answer(notification)
      if (outcome.sent) sent.push(`${notification.destination} ${notification.occasion} ${notification.job}`.trim())
      return outcome
    },
    log: createLog({ level: 'INFO', format: 'text', stream: logged }),
    metrics: noMetrics,
    clock,
    random: () => 0,
    settings: {
      enabled: true,
      globals: [],
      on: [],
      digestThreshold: 0,
      maxAttempts: 4,
      maxAgeSeconds: 3600,
      maxPending: 100,
      systemUser: 'svc',
      basePath: '',
      maxPageSize: 100,
      ...settings,
    },
  })
}

beforeEach(async () => {
  folder = makeFolder()
  ;({ database, bus } = await openDatabase(folder.path))
  store = createNotificationStore(database)
  clock = new TestClock()
  known.clear()
  define('chat')
  define('mail')
  sent = []
  answer = () => ok
  sender = createIt()
})
afterEach(async () => {
  await sender.stop()
  await database.close()
  folder.remove()
})

async function owe(destination: string, job: string, more: Partial<Notification> = {}): Promise<string> {
  const at = formatMicros(clock.now())
  const id = newId()
  const notification: Notification = {
    id,
    destination,
    occasion: 'failed',
    status: 'pending',
    job,
    rule: job,
    execution: null,
    attempts: 0,
    due_at: at,
    created_at: at,
    queued_at: at,
    sent_at: null,
    error: null,
    digest: null,
    content: { at },
    ...more,
  }
  await database.write({
    steps: [store.insert(notification)],
    facts: [{ name: 'notification.planned', payload: { destination } }],
  })
  return id
}
const statusOf = (id: string): string | undefined => store.find(id)?.status
const allSent = (count: number): Promise<unknown> =>
  waitFor(`${count} to be sent`, () => sent.length === count || undefined)

/** Moves the clock to each wait that comes up, until it is so. */
async function passTime(what: string, isSo: () => boolean): Promise<void> {
  await waitFor(what, () => {
    if (isSo()) return true
    if (clock.waits > 0) clock.advance(60_000)
    return undefined
  })
}

test('sends what is owed, also what was owed before the start, in order', async () => {
  const first = await owe('chat', 'a')
  const second = await owe('chat', 'b')
  await sender.start()
  const third = await owe('mail', 'a')
  await allSent(3)
  expect(sent.filter((each) => each.startsWith('chat'))).toEqual(['chat failed a', 'chat failed b'])
  await waitFor('all to be stored', () => [first, second, third].every((id) => statusOf(id) === 'sent') || undefined)
  expect(store.find(first)).toMatchObject({ attempts: 1, error: null })
  // The rows are read before the sender hears that they are stored.
  await waitFor('the sender to have nothing left', () => sender.waiting() === 0)
})

test('after a crash sends again only what may be unanswered', async () => {
  const unanswered = await owe('chat', 'a', { status: 'sending', attempts: 1 })
  const answered = await owe('chat', 'b', { status: 'sent', attempts: 1 })
  await sender.start()
  await waitFor('it to be stored', () => statusOf(unanswered) === 'sent' || undefined)
  expect(sent).toEqual(['chat failed a'])
  expect(store.find(answered)?.attempts).toBe(1)
})

fullOnly(test)('tries again with growing pauses, and gives up after the last attempt', async () => {
  const pauses: number[] = []
  answer = () => {
    pauses.push(clock.now())
    return down
  }
  await sender.start()
  const id = await owe('chat', 'a')
  await passTime('it to be given up', () => statusOf(id) === 'failed')
  expect(pauses).toHaveLength(4)
  expect(store.find(id)).toMatchObject({ attempts: 4, error: 'down' })
  expect(sender.failing()).toEqual(['chat'])
  expect(logged.text).toContain('Could not send a notification: down')
})

fullOnly(test)('gives up at once what cannot be helped, and what is too old', async () => {
  answer = ({ job }) => (job === 'bad' ? { ...down, isFinal: true } : down)
  await sender.start()
  const bad = await owe('chat', 'bad')
  const old = await owe('chat', 'old', { queued_at: formatMicros(clock.now() - 3600 * 1_000_000) })
  await waitFor('both to be given up', () => (statusOf(bad) === 'failed' && statusOf(old) === 'failed') || undefined)
  expect([bad, old].map((id) => store.find(id)?.attempts)).toEqual([1, 1])
})

test('a later message of a job waits for an earlier one; others, and other destinations, do not', async () => {
  let isDown = true
  answer = ({ job }) => (job === 'a' && isDown ? down : ok)
  await sender.start()
  await owe('chat', 'a')
  await waitFor('the first attempt', () => sender.failing().length > 0 || undefined)
  await owe('chat', 'a', { occasion: 'recovered' })
  await owe('chat', 'b')
  await owe('mail', 'b')
  await allSent(2)
  expect(sent.toSorted()).toEqual(['chat failed b', 'mail failed b'])
  isDown = false
  await passTime('all to be sent', () => sent.length === 4)
  expect(sent.slice(2)).toEqual(['chat failed a', 'chat recovered a'])
})

fullOnly(test)('a destination that does not answer holds up no other', async () => {
  let answerChat: (outcome: Outcome) => void = () => undefined
  answer = ({ destination }) => (destination === 'chat' ? new Promise((resolve) => (answerChat = resolve)) : ok)
  await sender.start()
  await owe('chat', 'a')
  for (let i = 0; i < 20; i++) await owe('mail', `job ${i}`)
  await allSent(20)
  answerChat(ok)
  await allSent(21)
  expect(sent.at(-1)).toBe('chat failed a')
})

fullOnly(test)('sends no more of a job than its rate; a recovery always', async () => {
  define('chat', { channel: 'ntfy', topic: 'x', rate_limit: { count: 2, per: '1h' } })
  await sender.start()
  const ids: string[] = []
  for (let i = 0; i < 4; i++) ids.push(await owe('chat', 'a'))
  await owe('chat', 'b')
  await owe('chat', 'a', { occasion: 'recovered' })
  await allSent(4)
  await waitFor('the rest', () => sender.waiting() === 0 || undefined)
  expect(ids.map(statusOf)).toEqual(['sent', 'sent', 'suppressed', 'suppressed'])
  expect(sent).toContain('chat recovered a')
})

fullOnly(test)('more than so many in a minute become one message, of equal recipients', async () => {
  sender = createIt({ digestThreshold: 3 })
  const ids: string[] = []
  for (let i = 0; i < 10; i++) ids.push(await owe('chat', `job ${i}`))
  const other = await owe('chat', 'mine', { content: { at: '', to: ['me@example.org'] } })
  await sender.start()
  await allSent(2)
  expect(sent).toEqual(['chat digest', 'chat failed mine'])
  expect(new Set(ids.map(statusOf))).toEqual(new Set(['digested']))
  await waitFor('the other to be stored', () => statusOf(other) === 'sent' || undefined)
  const digest = store.find(store.find(ids[0] ?? '')?.digest ?? '')
  expect(digest?.content.items?.map(({ job }) => job)).toEqual(ids.map((_, i) => `job ${i}`))
  // One by one: the third of this minute goes alone, those behind wait until the minute is over.
  await owe('chat', 'third')
  await allSent(3)
  for (let i = 0; i < 4; i++) await owe('chat', `later ${i}`)
  await passTime('the digest', () => sent.length === 4)
  expect(sent.at(-1)).toBe('chat digest')
})

fullOnly(test)('an alert of PagerDuty is never a part of a digest', async () => {
  define('pager', { channel: 'pagerduty', routing_key: 'R' })
  sender = createIt({ digestThreshold: 1 })
  for (let i = 0; i < 5; i++) await owe('pager', `job ${i}`)
  await sender.start()
  await allSent(5)
  expect(new Set(sent.map((each) => each.split(' ')[1]))).toEqual(new Set(['failed']))
})

fullOnly(test)('what waits for a destination that is gone fails and says so', async () => {
  await owe('chat', 'a')
  known.delete('chat')
  await sender.start()
  await waitFor('it to fail', () => sender.waiting() === 0 || undefined)
  expect(await store.list({}, { limit: undefined, offset: 0 }, undefined)).toMatchObject([
    { status: 'failed', error: expect.stringContaining('no destination "chat"') },
  ])
})
