/**
 * What actions announce for a chat: the results of their executions, so that nothing is missed and nothing said twice. The
 * stream tells when to look. An announcement is owed from when it is found until it is posted.
 */
import { createKeyedLock } from '../../lib/concurrency/index.ts'
import type { Client } from '../connection/client.ts'
import { textOrEmpty, toObject } from '../connection/responses.ts'
import type { Json } from '../output/print.ts'
import type { ChatAdapter } from './adapter.ts'
import { attachmentsIn } from './attachments.ts'
import type { ChatConfig } from './config.ts'
import type { Say } from './say.ts'
import type { ChatState, OwedAnnouncement } from './state.ts'

/** An announcement that could not be posted for so long is dropped, and one that is older is not looked for. */
const MAX_AGE_MS = 60 * 60_000
const PAGE = 100
/** Executions that are looked through at once. */
const MAX_LOOKED_AT = 500
const MAX_FOREIGN = 10_000

export interface Announcements {
  /** The stream tells of one, whose execution has not ended. */
  hear(): void
  /** The stream tells of the end of an execution. @throws what a request throws */
  noteEnd(): Promise<void>
  /** Looks for those that the stream did not tell of. @throws what a request throws */
  catchUp(): Promise<void>
  /** Posts those of a process before this one. */
  resume(): void
}

export function createAnnouncements({
  adapter,
  config: { route, users },
  state,
  client,
  say,
  log,
  signal,
  now,
}: {
  adapter: Pick<ChatAdapter, 'name'>
  config: Pick<ChatConfig, 'route' | 'users'>
  state: ChatState
  client: Pick<Client, 'call'>
  readonly say: Say
  readonly log: (text: string) => void
  signal: AbortSignal
  readonly now: () => number
}): Announcements {
  const withLock = createKeyedLock()

  /** Executions whose announcements are not for this bot. */
  const foreign = new Set<string>()

  function isForHere(said: Json): boolean {
    const { adapter: of } = toObject(said['context'])
    if (of !== undefined && of !== adapter.name) return false
    const to = said['whisper'] === true ? said['user'] : said['channel']
    if (textOrEmpty(to) === '') return false
    return textOrEmpty(said['message']) !== '' || attachmentsIn(said['extra'], adapter.name).length > 0
  }

  async function take(announcement: OwedAnnouncement): Promise<void> {
    if (await state.oweAnnouncement(announcement)) void post(announcement, false)
    else log(`${adapter.name}: too many announcements wait; that of execution ${announcement.id} is dropped`)
  }

  /** Those for one channel in their order. Never rejects. */
  function post({ id, said, at }: OwedAnnouncement, mayHaveBeenSent: boolean): Promise<void> {
    const channel = textOrEmpty(said['channel'])
    const named = textOrEmpty(said['user'])
    const user = named === '' ? undefined : chatUserOf(named)
    const { thread } = toObject(said['context'])
    const isPrivate = said['whisper'] === true
    return withLock(isPrivate ? `user ${user ?? ''}` : `channel ${channel}`, async () => {
      try {
        await say({
          ...(isPrivate ? { privateTo: user } : { user }),
          channel,
          thread: typeof thread === 'string' ? thread : undefined,
          text: textOrEmpty(said['message']).replaceAll('{~}', '\n'),
          attachments: attachmentsIn(said['extra'], adapter.name),
          key: `announcement-${id}`,
          mayHaveBeenSent,
          until: at + MAX_AGE_MS,
        })
        await state.removeAnnouncement(id)
      } catch (error) {
        if (!signal.aborted) log(`${adapter.name}: ${error instanceof Error ? error.message : String(error)}`)
      }
    })
  }

  /** Workflows may name a user of svc. */
  function chatUserOf(user: string): string {
    if (users.has(user)) return user
    for (const [chatUser, name] of users) if (name === user) return chatUser
    return user
  }

  /** Those that the stream has told of and that are not found. */
  let expected = 0
  let looking: Promise<void> = Promise.resolve()
  let isWaiting = false

  /** Who comes while one looks shares the next look. */
  function look(): Promise<void> {
    if (isWaiting) return looking
    isWaiting = true
    looking = looking
      .catch(() => undefined)
      .then(async () => {
        isWaiting = false
        const found = await unknownOnes()
        expected = Math.max(0, expected - found.length)
        for (const announcement of found) await take(announcement)
      })
    return looking
  }

  /** The oldest first. */
  async function unknownOnes(): Promise<OwedAnnouncement[]> {
    const found: OwedAnnouncement[] = []
    for (let offset = 0; offset < MAX_LOOKED_AT; offset += PAGE) {
      const query = {
        runner: 'announcement',
        status: 'succeeded',
        timestamp_gt: new Date(Math.max(state.since, now() - MAX_AGE_MS)).toISOString(),
        sort_desc: true,
        include_attributes: 'id,action.parameters,parameters,result,start_timestamp',
        limit: PAGE,
        offset,
      }
      const { body } = await client.call('GET', '/executions', { query })
      const page = Array.isArray(body) ? body.map(toObject) : []
      const unknown = page.filter(({ id }) => !state.hasAnnounced(textOrEmpty(id)) && !foreign.has(textOrEmpty(id)))
      for (const execution of unknown) {
        const id = textOrEmpty(execution['id'])
        const said = toObject(toObject(execution['result'])['output'])
        if (routeOf(execution) === route && isForHere(said)) {
          found.push({ id, said, at: Date.parse(textOrEmpty(execution['start_timestamp'])) })
        } else {
          if (foreign.size >= MAX_FOREIGN) foreign.clear()
          foreign.add(id)
        }
      }
      if (page.length < PAGE || unknown.length === 0) break
    }
    return found.toReversed()
  }

  return {
    hear() {
      expected += 1
    },

    async noteEnd() {
      if (expected > 0) await look()
    },

    async catchUp() {
      expected = 0
      await look()
    },

    resume() {
      for (const announcement of state.announcements) void post(announcement, true)
    },
  }
}

/** What the execution was given, else what the action has. */
function routeOf({ parameters, action }: Json): string {
  const schema = toObject(toObject(toObject(action)['parameters'])['route'])
  return textOrEmpty(toObject(parameters)['route']) || textOrEmpty(schema['default']) || 'general'
}
