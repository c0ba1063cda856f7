/** The general stream: all events from now on (contract 04, 4.2). */
import type { Bus } from '../../bus/index.ts'
import { frame, type EventSink, type Rights } from '../../http/index.ts'
import { ourEvent, theirEvent, withTheirNames } from '../../core/compat/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { isFinal, type Executions } from '../executions/index.ts'
import type {
  AnnouncementEvent,
  Execution,
  ExecutionRecord,
  ExecutionStatus,
  OutputRecord,
} from '../executions/types.ts'
import { outputEvent, outputFrame } from './frames.ts'
import {
  actionAliasResource,
  executionResource,
  type ResourcePermission,
  type Resource,
} from '../../core/permissions.ts'
import { createReplay, type Place, type Replay } from './replay.ts'
import type { ContentEvent, ContentKind } from './types.ts'
import { writeJson } from '../../lib/json/index.ts'

export const defaultEvents = [
  'svc.announcement__*',
  'svc.execution__create',
  'svc.execution__update',
  'svc.execution__delete',
  'svc.liveaction__create',
  'svc.liveaction__update',
  'svc.liveaction__delete',
]

/** Ours, not part of the compatible stream: clients ask for it by name. */
export const contentEvent = 'svc.content__change'
/** Changes come in bursts: a pack has hundreds of actions. */
const CONTENT_MS = 500

export interface StreamFilter {
  /** Event names or shell globs. */
  events: string[]
  /** The same with StackStorm's names of the events. */
  theirEvents?: string[]
  actionRefs: ReadonlySet<string> | undefined
  executionIds: ReadonlySet<string> | undefined
  /** Of executions whose children are wanted. */
  parentIds: ReadonlySet<string> | undefined
  /**
   * Event name and payload id whose arrival with a final status ends the stream. For `svc.execution__update` the client
   * first gets what has happened to that execution already.
   */
  end: { event: string; executionId: string } | undefined
  /** What is delivered of executions; undefined: the whole record. */
  parts: ExecutionParts | undefined
}

/** What a client wants to have of each execution. */
export interface ExecutionParts {
  /** Equal for clients that want the same, so that it is encoded once for all of them. */
  key: string
  apply(record: ExecutionRecord): Record<string, unknown>
}

/** One event before it is known whether anybody wants it. */
interface StreamEvent {
  name: string
  /** Undefined: the event concerns no execution. */
  actionRef: string | undefined
  /** Live-action events and announcements carry none. */
  executionId: string | undefined
  /** Of events of executions that have a parent. */
  parentId?: string | null
  /** The execution it is about; undefined: every follower of the stream may see it. */
  resource: Resource | undefined
  /** What is needed on it; default: `execution_view`. */
  permission?: ResourcePermission
  /** The payload's own id and status; output has no status. */
  subject: { id: string; status: ExecutionStatus } | undefined
  /** Of what is in the rows. */
  place?: Place
  /**
   * @param name of the event, as the client calls it
   * @param parts of an execution; other events are delivered whole
   */
  frame(name: string, parts: ExecutionParts | undefined): string
}

export interface GeneralStream {
  readonly clientCount: number
  /** Delivers only events of executions that the caller can view. */
  run(sink: EventSink, filter: StreamFilter, rights: Rights): Promise<void>
  /** Ends every stream, without a last event. */
  stop(): void
}

interface Client {
  sink: EventSink
  mayView(event: StreamEvent): boolean
  /**
   * Called for visible events only.
   *
   * @returns the name of the event, as the client calls it; undefined: it does not want it
   */
  wants(event: StreamEvent): string | undefined
  filter: StreamFilter
  /** Of the execution that ends the stream. */
  replay: Replay | undefined
  end(): void
}

const updateEvent = 'svc.execution__update'

export function createGeneralStream(
  bus: Bus,
  executions: Pick<Executions, 'record' | 'liveactionRecord' | 'find' | 'findWithResult' | 'statusOf' | 'outputCursor'>,
): GeneralStream {
  const clients = new Set<Client>()
  let isStopped = false

  bus.subscribe('execution.created', ({ execution }) => announceExecution('create', execution))
  bus.subscribe('execution.updated', ({ execution }) => announceExecution('update', execution))
  bus.subscribe('execution.output', ({ records: output, action_ref, runner_ref, execution_id, user }) => {
    if (clients.size === 0) return
    const about = { id: execution_id, action_ref, user, runner_ref }
    for (const record of output) deliver(eventOfOutput(record, about))
  })

  bus.subscribe('announcement.created', ({ execution, route, message }) => {
    if (clients.size === 0) return
    const name = `svc.announcement__${route}`
    deliver({
      resource: executionResource(execution),
      name,
      actionRef: execution.action_ref,
      // A filter by execution excludes announcements of that execution (contract 04, 4.2).
      executionId: undefined,
      subject: undefined,
      frame: framed(() => announcementOf(execution, message)),
    })
  })

  bus.subscribe('alias.changed', ({ change, alias }) => {
    if (clients.size === 0) return
    const name = `svc.actionalias__${change}`
    deliver({
      resource: actionAliasResource(alias.ref),
      permission: 'action_alias_view',
      name,
      actionRef: undefined,
      executionId: undefined,
      subject: undefined,
      frame: framed(() => alias),
    })
  })

  let changedKinds = new Set<ContentKind>()
  let telling: NodeJS.Timeout | undefined
  bus.subscribe('content.changed', ({ kind }) => noteContent(kind))
  bus.subscribe('policy.changed', () => noteContent('policy'))
  bus.subscribe('rule.changed', () => noteContent('rule'))
  for (const fact of ['trigger.created', 'trigger.updated', 'trigger.deleted'] as const) {
    bus.subscribe(fact, () => noteContent('trigger'))
  }

  function noteContent(kind: ContentKind): void {
    if (clients.size === 0) return
    changedKinds.add(kind)
    telling ??= setTimeout(tellContent, CONTENT_MS).unref()
  }

  function tellContent(): void {
    telling = undefined
    const content: ContentEvent = { kinds: [...changedKinds].toSorted() }
    changedKinds = new Set()
    deliver({
      resource: undefined,
      name: contentEvent,
      actionRef: undefined,
      executionId: undefined,
      subject: undefined,
      frame: framed(() => content),
    })
  }

  function announceExecution(change: 'create' | 'update', execution: Execution): void {
    if (clients.size === 0) return
    for (const event of eventsOf(change, execution)) deliver(event)
  }

  /** Of the live action, then of the execution. */
  function eventsOf(change: 'create' | 'update', execution: Execution): StreamEvent[] {
    const name = `svc.execution__${change}`
    const liveName = `svc.liveaction__${change}`
    const about = {
      resource: executionResource(execution),
      actionRef: execution.action_ref,
      place: { executionId: execution.id, revision: execution.revision },
    }
    return [
      {
        ...about,
        name: liveName,
        executionId: undefined,
        subject: { id: execution.liveaction_id, status: execution.status },
        frame: framed(() => executions.liveactionRecord(execution)),
      },
      {
        ...about,
        name,
        executionId: execution.id,
        parentId: execution.parent,
        subject: execution,
        frame: framed(() => executions.record(execution)),
      },
    ]
  }

  function deliver(event: StreamEvent): void {
    for (const client of clients) {
      if (event.place !== undefined && client.replay?.covers(event.place) === true) continue
      send(client, event)
    }
  }

  /** @returns false: the client is slow */
  function send(client: Client, event: StreamEvent): boolean {
    if (!client.mayView(event)) return true
    const name = client.wants(event)
    const isAccepted = name === undefined || client.sink.write(event.frame(name, client.filter.parts))
    const { end } = client.filter
    if (
      end !== undefined &&
      end.event === event.name &&
      event.subject?.id === end.executionId &&
      isFinal(event.subject.status)
    ) {
      client.end()
    }
    return isAccepted
  }

  /** @returns undefined: no execution ends the stream, or none that exists */
  function replayFor(client: Client, nameFor: NameFor): Replay | undefined {
    const { end } = client.filter
    if (end?.event !== updateEvent || executions.find(end.executionId) === undefined) return undefined
    return createReplay({
      executions,
      sink: client.sink,
      id: end.executionId,
      wantsOutput: nameFor(outputEvent) !== undefined,
      isOver: () => !clients.has(client),
      sendUpdate(execution) {
        for (const event of eventsOf('update', execution)) send(client, event)
      },
      sendOutput: (record, { id, action_ref, user, runner }) =>
        send(client, eventOfOutput(record, { id, action_ref, user, runner_ref: runner.name })),
    })
  }

  return {
    get clientCount() {
      return clients.size
    },
    async run(sink, filter, rights) {
      const nameFor = namesFor(filter)
      await new Promise<void>((resolve, reject) => {
        const end = (): void => {
          clients.delete(client)
          resolve()
        }
        const client: Client = {
          sink,
          filter,
          replay: undefined,
          end,
          mayView: ({ resource, permission = 'execution_view' }) =>
            resource === undefined || rights.may(permission, resource),
          wants: ({ name, actionRef, executionId, parentId }) =>
            (filter.actionRefs === undefined || (actionRef !== undefined && filter.actionRefs.has(actionRef))) &&
            (filter.executionIds === undefined ||
              (executionId !== undefined && filter.executionIds.has(executionId))) &&
            (filter.parentIds === undefined || (typeof parentId === 'string' && filter.parentIds.has(parentId)))
              ? nameFor(name)
              : undefined,
        }
        clients.add(client)
        sink.closed.addEventListener('abort', end)
        if (sink.closed.aborted || isStopped) end()
        // Shows clients that the stream is open, before anything happens.
        sink.write('\n')
        if (!clients.has(client)) return
        client.replay = replayFor(client, nameFor)
        client.replay?.run().catch((error: unknown) => {
          clients.delete(client)
          reject(error)
        })
      })
    },
    stop() {
      isStopped = true
      clearTimeout(telling)
      for (const client of clients) client.end()
    },
  }
}

function eventOfOutput(
  record: OutputRecord,
  about: { id: string; action_ref: string; user: string; runner_ref: string },
): StreamEvent {
  const { id, action_ref, runner_ref } = about
  return {
    resource: executionResource(about),
    name: outputEvent,
    actionRef: action_ref,
    executionId: id,
    subject: undefined,
    place: { executionId: id, seq: record.seq },
    frame: oncePerName((name) => outputFrame(record, action_ref, runner_ref, name)),
  }
}

/** With the id of the trace, and its tag when the request for the execution gave one. */
function announcementOf({ trace_id: id, context }: Execution, payload: unknown): AnnouncementEvent {
  const given = context['trace_context']
  const tag = isObject(given) ? given['trace_tag'] : undefined
  return { payload, trace_context: { id_: id, ...(tag === undefined ? {} : { trace_tag: tag }) } }
}

/** Few names: ours, and StackStorm's. */
function oncePerName(make: (name: string) => string): (name: string) => string {
  const texts = new Map<string, string>()
  return (name) => {
    const known = texts.get(name)
    if (known !== undefined) return known
    const text = make(name)
    texts.set(name, text)
    return text
  }
}

/**
 * Encodes a record once for each name of its event and each selection of parts.
 *
 * @param make returns an execution record, or one that is never asked for in parts
 */
function framed(make: () => object): StreamEvent['frame'] {
  const texts = new Map<string, string>()
  let made: object | undefined
  return (name, parts) => {
    const key = `${name} ${parts?.key ?? ''}`
    let text = texts.get(key)
    if (text === undefined) {
      const record = (made ??= make())
      const wanted = parts === undefined || !isExecution(name) ? record : parts.apply(record as ExecutionRecord)
      text = frame(name, writeJson(ourEvent(name) === undefined ? wanted : withTheirNames(wanted)))
      texts.set(key, text)
    }
    return text
  }
}

const isExecution = (name: string): boolean => /^(?:svc|st2)\.execution__/.test(name)

/** The name under which a client gets an event; undefined: it does not want it. */
type NameFor = (name: string) => string | undefined

function namesFor({ events, theirEvents = [] }: StreamFilter): NameFor {
  const matches = compileNames(events)
  const matchesTheirs = compileNames(theirEvents)
  return (name) => {
    if (matches(name)) return name
    const theirs = theirEvents.length === 0 ? undefined : theirEvent(name)
    return theirs !== undefined && matchesTheirs(theirs) ? theirs : undefined
  }
}

const MAX_GLOB_LENGTH = 200

/** Shell globs `*`, `?`, `[..]`; case-sensitive. Names repeat, so each is matched once and remembered. */
export function compileNames(patterns: readonly string[]): (name: string) => boolean {
  const known = new Map<string, boolean>()
  return (name) => {
    let matches = known.get(name)
    if (matches === undefined) {
      matches = patterns.some((pattern) => pattern.length <= MAX_GLOB_LENGTH && globMatches(pattern, name))
      // Announcement routes are free text, so the number of names has no bound of its own.
      if (known.size < 1000) known.set(name, matches)
    }
    return matches
  }
}

/** At most pattern times text: only the last `*` is ever returned to. */
function globMatches(pattern: string, text: string): boolean {
  let p = 0
  let t = 0
  let star = -1
  let starText = 0
  while (t < text.length) {
    const step = p < pattern.length && pattern[p] !== '*' ? matchOne(pattern, p, text.charAt(t)) : 0
    if (step > 0) {
      p += step
      t += 1
    } else if (pattern[p] === '*') {
      star = p
      starText = t
      p += 1
    } else if (star !== -1) {
      p = star + 1
      starText += 1
      t = starText
    } else {
      return false
    }
  }
  while (pattern[p] === '*') p += 1
  return p === pattern.length
}

/** Length of the pattern element at `p` when it matches the character, else 0. */
function matchOne(pattern: string, p: number, character: string): number {
  const element = pattern.charAt(p)
  if (element === '?') return 1
  if (element !== '[') return element === character ? 1 : 0
  const negated = pattern[p + 1] === '!' || pattern[p + 1] === '^'
  const start = negated ? p + 2 : p + 1
  // A `]` that comes first is one of the set.
  const close = pattern.indexOf(']', start + 1)
  if (close === -1) return element === character ? 1 : 0
  const set = pattern.slice(start, close)
  let found = false
  for (let i = 0; i < set.length; i++) {
    if (set.charAt(i + 1) === '-' && i + 2 < set.length) {
      found ||= set.charAt(i) <= character && character <= set.charAt(i + 2)
      i += 2
    } else {
      found ||= set.charAt(i) === character
    }
  }
  return found === negated ? 0 : close - p + 1
}
