/**
 * The bot: messages of a chat become commands of svc, their results come back as posts. A result is owed from before the
 * command is sent until its post is accepted: what a crash interrupts is done again, with the same keys, so that neither a
 * command nor a post happens twice.
 */
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { IncomingMessage } from 'node:http'
import { createKeyedLock } from '../../lib/concurrency/index.ts'
import { readJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import type { Client } from '../connection/client.ts'
import { segment } from '../connection/client.ts'
import { recordIn, textOrEmpty, toObject, type ApiResponse } from '../connection/responses.ts'
import { readEvents } from '../connection/server-events.ts'
import { isFinalRecord, recordStatusOf } from '../executions/calls.ts'
import { HttpFailure, Interrupted } from '../failures.ts'
import type { Json } from '../output/print.ts'
import type { ChatAdapter, ChatMessage } from './adapter.ts'
import { createAnnouncements } from './announcements.ts'
import { answerIn } from './answers.ts'
import { attachmentsIn, type Attachment } from './attachments.ts'
import type { ChatConfig } from './config.ts'
import { createSay } from './say.ts'
import { MAX_OWED, type ChatState, type OwedResult } from './state.ts'

/** What is said to a chat user whose command is not carried out. */
class Refusal extends Error {}

export interface BotDeps {
  adapter: ChatAdapter
  config: Omit<ChatConfig, 'matrix' | 'mattermost' | 'slack' | 'account' | 'isReadableByOthers'>
  state: ChatState
  /** With the credential of the bot. */
  client: Client
  /** With the permissions of a user. @throws as `Client.call` */
  readonly callAs: (user: string, ...call: Parameters<Client['call']>) => Promise<ApiResponse>
  /** Whom the server knows by this nickname in the chat system; undefined: nobody, or the bot may not ask. */
  readonly userOfNickname: (chatUser: string) => Promise<string | undefined>
  readonly log: (text: string) => void
  signal: AbortSignal
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/** Commands of one chat user in a minute. */
const MAX_COMMANDS_A_MINUTE = 20
const MINUTE_MS = 60_000
/** UTF-16 units of a command; the server takes no longer one. */
const MAX_COMMAND_CHARS = 10_000
/** Older commands are not carried out any more. */
const MAX_AGE_MS = 15 * MINUTE_MS
/** Chat users whose commands are counted. */
const MAX_COUNTED_USERS = 10_000
const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 30_000
/** What the stream may have missed is asked for this often. */
const SWEEP_MS = 30_000
const MAX_HELP = 50

export async function runBot(deps: BotDeps): Promise<void> {
  const { adapter, config, state, client, callAs, userOfNickname, log, signal } = deps
  const now = deps.now ?? Date.now
  const withLock = createKeyedLock()
  const recent = new Map<string, number[]>()
  /** Messages that are being dealt with. */
  const inHand = new Set<string>()
  /** Commands of a process before this one. */
  const resumed = new Set(state.owed.map(({ key }) => key))

  const tell = createSay({ adapter, log, signal, now })
  const announcements = createAnnouncements({ adapter, config, state, client, say: tell, log, signal, now })

  const say = (
    { channel, thread, key: of }: { channel: string; thread?: string | undefined; key?: string },
    text: string,
    key: string,
    attachments: readonly Attachment[] = [],
  ): Promise<void> =>
    tell({ channel, thread, text, key, attachments, mayHaveBeenSent: of !== undefined && resumed.has(of) })

  /** @throws Refusal */
  async function userOf(chatUser: string): Promise<string> {
    const user = config.users.get(chatUser) ?? (await userOfNickname(chatUser)) ?? config.defaultUser
    if (user !== undefined) return user
    log(`${adapter.name}: ${chatUser} is no known user`)
    throw new Refusal(`${chatUser} is not known here. Ask the operator of svc chat to add you to its users.`)
  }

  /** @returns commands of the user in the last minute, one more than are allowed at most; this one is counted from now on */
  function countRecent(user: string): number {
    const since = now() - MINUTE_MS
    const times = (recent.get(user) ?? []).filter((time) => time > since)
    if (recent.size >= MAX_COUNTED_USERS && !recent.has(user)) recent.clear()
    recent.set(user, [...times, now()].slice(-MAX_COMMANDS_A_MINUTE - 1))
    return times.length
  }

  /** @throws StateFailure: the message is to come again */
  async function handle(message: ChatMessage): Promise<void> {
    const text = message.text.trim()
    const hasPrefix = text.startsWith(config.prefix)
    const command = hasPrefix ? text.slice(config.prefix.length).trim() : text
    if ((!hasPrefix && message.isCommand !== true) || command === '') return
    const { id } = message
    if (inHand.has(id) || state.hasHandled(id) || state.find(id) !== undefined) return
    inHand.add(id)
    try {
      await carryOut(message, command)
      await state.noteHandled(id).catch((error: unknown) => log(`svc chat: ${reasonOf(error)}`))
    } finally {
      inHand.delete(id)
    }
  }

  async function carryOut(message: ChatMessage, command: string): Promise<void> {
    const to = { channel: message.channel, thread: message.thread }
    const count = countRecent(message.user)
    // Nobody can make the bot post without limit: this is said once.
    if (count > MAX_COMMANDS_A_MINUTE) return
    if (count === MAX_COMMANDS_A_MINUTE) {
      return say(
        to,
        `These are more than ${MAX_COMMANDS_A_MINUTE} commands in a minute. svc chat ignores yours until you have waited a minute.`,
        `${message.id}-no`,
      )
    }
    if (now() - message.at > MAX_AGE_MS) {
      return say(to, 'This was said while svc chat was away. Say it again if it is still wanted.', `${message.id}-no`)
    }
    if (command.length > MAX_COMMAND_CHARS) {
      return say(to, `This is longer than the ${MAX_COMMAND_CHARS} characters of a command.`, `${message.id}-no`)
    }
    const [word = '', ...rest] = command.split(/\s+/)
    if (word === 'help')
      return say(
        to,
        await answering(async () => help(await userOf(message.user), rest.join(' '))),
        `${message.id}-help`,
      )
    if (['respond', 'approve', 'deny'].includes(word)) {
      return say(
        to,
        await answering(async () => respond(await userOf(message.user), word, command)),
        `${message.id}-answer`,
      )
    }
    if (state.owed.length >= MAX_OWED) {
      return say(to, `${MAX_OWED} commands are running already; try again later.`, `${message.id}-no`)
    }
    const user = config.users.get(message.user)
    const entry = { key: message.id, adapter: adapter.name, ...to, user, chatUser: message.user, command }
    await state.put(entry)
    // Others need not wait until the server has answered.
    void work(entry)
  }

  /** What a refusal says, in place of an answer. */
  async function answering(ask: () => Promise<string>): Promise<string> {
    try {
      return await ask()
    } catch (error) {
      if (signal.aborted || error instanceof Interrupted) throw error
      return reasonOf(error)
    }
  }

  async function help(user: string, filter: string): Promise<string> {
    const query = { limit: MAX_HELP, ...(filter === '' ? {} : { filter }) }
    const answer = recordIn(await callAs(user, 'GET', '/actionalias/help', { query }))
    const found = (answer['helpstrings'] as { display: string; description: string }[] | undefined) ?? [] // of the schema of the answer
    if (found.length === 0) return 'There are no commands.'
    const lines = found.map(
      ({ display, description }) => `${config.prefix}${display}${description === '' ? '' : ` - ${description}`}`,
    )
    const more = Number(answer['available']) - found.length
    return ['```', ...lines, '```', ...(more > 0 ? [`and ${more} more: ${config.prefix}help <words>`] : [])].join('\n')
  }

  async function respond(user: string, word: string, command: string): Promise<string> {
    const [, id = '', rest = ''] = /^\S+\s+(\S+)\s*([^]*)$/.exec(command) ?? []
    if (id === '') return `Which inquiry? ${config.prefix}${word} <id>${word === 'respond' ? ' name=value' : ''}`
    const inquiry = recordIn(await callAs(user, 'GET', `/inquiries/${segment(id)}`))
    const response = answerIn(word, rest, toObject(inquiry['schema']))
    if (typeof response === 'string') return response
    await callAs(user, 'PUT', `/inquiries/${segment(id)}`, { body: { id, response } })
    return `Answered: ${id}.`
  }

  /** One at a time for each command. Never rejects. */
  function work(entry: OwedResult): Promise<void> {
    return withLock(entry.key, async () => {
      try {
        const current = state.find(entry.key)
        if (current === undefined) return
        await finish(current.executions === undefined ? await start(current) : current)
      } catch (error) {
        if (!signal.aborted) log(`${adapter.name}: the command of ${entry.chatUser} waits: ${reasonOf(error)}`)
      }
    })
  }

  /** @returns undefined: there is nothing to wait for */
  async function start(entry: OwedResult): Promise<OwedResult | undefined> {
    const body = {
      command: entry.command,
      user: entry.chatUser,
      source_channel: entry.channel,
      source_context: { adapter: entry.adapter, thread: entry.thread },
    }
    let answer: Json
    let user = entry.user
    try {
      user ??= await userOf(entry.chatUser)
      const headers = { 'Idempotency-Key': createHash('sha256').update(`${entry.adapter} ${entry.key}`).digest('hex') }
      answer = recordIn(await callAs(user, 'POST', '/aliasexecution/match_and_execute', { body, headers }))
    } catch (error) {
      if (!isRefusal(error)) throw error
      const isUnfit = error instanceof HttpFailure && error.status === 400
      const hint = isUnfit && user !== undefined ? await suggestion(user, entry.command) : ''
      await say(entry, `${reasonOf(error)}${hint}`, `${entry.key}-ack`)
      await state.remove(entry.key)
      return undefined
    }
    const results = (answer['results'] as Json[] | undefined) ?? [] // of the schema of the answer
    const executions = results.map(({ execution }) => textOrEmpty(toObject(execution)['id']))
    const said = results.filter((result) => acknowledgement(result) !== '')
    if (said.length > 0) {
      const attachments = said.flatMap(({ extra }) => attachmentsIn(extra, adapter.name))
      await say(entry, said.map(acknowledgement).join('\n'), `${entry.key}-ack`, attachments)
    }
    const started = { ...entry, user, executions }
    await state.put(started)
    return started
  }

  /** Formats that begin with the same word. */
  async function suggestion(user: string, command: string): Promise<string> {
    const [word = ''] = command.split(/\s+/)
    if (!/^[\p{L}\p{N}_-]+$/u.test(word)) return ''
    try {
      const query = { filter: `^${word.slice(0, 3)}`, limit: 3 }
      const answer = recordIn(await callAs(user, 'GET', '/actionalias/help', { query }))
      const found = (answer['helpstrings'] as { display: string }[] | undefined) ?? [] // of the schema of the answer
      const all = found.map(({ display }) => `${config.prefix}${display}`)
      return `\n${all.length === 0 ? `${config.prefix}help lists the commands.` : `There is: ${all.join(', ')}`}`
    } catch {
      return ''
    }
  }

  /** Posts the results of those that have ended. */
  async function finish(entry: OwedResult | undefined): Promise<void> {
    let left = entry?.executions ?? []
    for (const id of left) {
      if (entry === undefined) return
      const user = entry.user ?? (await userOf(entry.chatUser))
      let text: string | undefined
      let attachments: Attachment[] = []
      try {
        const query = { include_attributes: 'id,status' }
        const execution = recordIn(await callAs(user, 'GET', `/executions/${segment(id)}`, { query }))
        if (!isFinalRecord(recordStatusOf(execution))) continue
        const reply = recordIn(await callAs(user, 'GET', `/aliasexecution/${segment(id)}/reply`))
        text = reply['enabled'] === false ? undefined : textOrEmpty(reply['message']).replaceAll('{~}', '\n')
        attachments = attachmentsIn(reply['extra'], adapter.name)
      } catch (error) {
        if (!(error instanceof HttpFailure) || (error.status !== 404 && error.status !== 403)) throw error
        text = `The result of ${id} cannot be read: ${reasonOf(error)}`
      }
      if (text !== undefined) await say(entry, text, id, attachments)
      left = left.filter((other) => other !== id)
      if (left.length > 0) await state.put({ ...entry, executions: left })
    }
    if (entry !== undefined && left.length === 0) await state.remove(entry.key)
  }

  async function sweep(): Promise<void> {
    await Promise.all(state.owed.filter((entry) => entry.adapter === adapter.name).map((entry) => work(entry)))
    await tellInquiries()
    await announcements.catchUp()
  }

  async function tellInquiries(): Promise<void> {
    if (config.inquiries === undefined) return
    const { body } = await client.call('GET', '/inquiries', { query: { limit: 100 } })
    for (const inquiry of Array.isArray(body) ? body : []) await tellInquiry(toObject(inquiry))
  }

  async function tellInquiry(inquiry: Json): Promise<void> {
    const { inquiries } = config
    const id = textOrEmpty(inquiry['id'])
    if (inquiries === undefined || inquiry['route'] !== inquiries.route || state.hasTold(id)) return
    const asked = Object.entries(toObject(toObject(inquiry['schema'])['properties'])).map(([name, schema]) => {
      const { type, description } = toObject(schema)
      const about = textOrEmpty(description)
      return `${name} (${textOrEmpty(type) || 'any'})${about === '' ? '' : `: ${about}`}`
    })
    const how = `${config.prefix}approve ${id}, ${config.prefix}deny ${id} or ${config.prefix}respond ${id} name=value`
    await say({ channel: inquiries.channel }, ['An execution asks:', ...asked, how].join('\n'), `inquiry-${id}`)
    await state.noteTold(id)
  }

  async function follow(): Promise<void> {
    const announcement = `svc.announcement__${config.route}`
    const update = 'svc.execution__update'
    let retry = FIRST_RETRY_MS
    while (!signal.aborted) {
      let response: IncomingMessage | undefined
      const end = (): unknown => response?.destroy()
      try {
        const query = { events: `${announcement},${update}`, include_attributes: 'id,status' }
        response = await client.openStream('/stream', query, {})
        signal.addEventListener('abort', end)
        // What has happened before the stream was open.
        void sweep().catch((error: unknown) => log(`svc: ${reasonOf(error)}`))
        retry = FIRST_RETRY_MS
        for await (const { name, data } of readEvents(response)) {
          const record = readJson(data)
          if (!isObject(record)) continue
          if (name === announcement) announcements.hear()
          else await noteUpdate(record)
        }
      } catch (error) {
        if (signal.aborted || error instanceof Interrupted) return
        log(`svc: ${reasonOf(error)}; trying again in ${Math.ceil(retry / 1000)} s`)
      } finally {
        signal.removeEventListener('abort', end)
      }
      await delay(retry, undefined, { signal }).catch(() => undefined)
      retry = Math.min(MAX_RETRY_MS, retry * 2)
    }
  }

  async function noteUpdate(record: Json): Promise<void> {
    const id = textOrEmpty(record['id'])
    const status = recordStatusOf(record)
    if (status === 'pending' && config.inquiries !== undefined) {
      const answer = await client.call('GET', `/inquiries/${segment(id)}`).catch(() => undefined)
      if (answer !== undefined) void tellInquiry(recordIn(answer)).catch((error: unknown) => log(reasonOf(error)))
    }
    if (!isFinalRecord(status)) return
    void announcements.noteEnd().catch((error: unknown) => log(`svc: ${reasonOf(error)}`))
    const entry = state.owed.find(({ executions }) => executions?.includes(id))
    if (entry !== undefined) void work(entry)
  }

  async function sweepNowAndThen(): Promise<void> {
    while (!signal.aborted) {
      await delay(SWEEP_MS, undefined, { signal }).catch(() => undefined)
      if (!signal.aborted) await sweep().catch((error: unknown) => log(`svc: ${reasonOf(error)}`))
    }
  }

  announcements.resume()
  await Promise.all([adapter.run(handle, signal), follow(), sweepNowAndThen()])
}

function acknowledgement({ execution, actionalias, message }: Json): string {
  const ack = toObject(toObject(actionalias)['ack'])
  if (ack['enabled'] === false) return ''
  const { id, web_url: url } = toObject(execution)
  const said = textOrEmpty(message).replaceAll('{~}', '\n') || `Started: ${textOrEmpty(id)}`
  return ack['append_url'] === false || textOrEmpty(url) === '' ? said : `${said} ${textOrEmpty(url)}`
}

/** Another attempt would be refused as well. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Refusal ||
  (error instanceof HttpFailure &&
    error.status < 500 &&
    error.status !== 401 &&
    error.status !== 429 &&
    // The server is still at the first attempt.
    error.code !== 'IDEMPOTENCY_KEY_IN_USE')

/** A sentence without addresses of the server. */
function reasonOf(error: unknown): string {
  if (error instanceof HttpFailure) return error.faultstring
  return error instanceof Error ? error.message : String(error)
}
