import {
  isTheirEventPattern,
  nameHere,
  ourEvent,
  ourEventPattern,
  theirEvent,
  type Compat,
} from '../../core/compat/index.ts'
import { headerInvalid, noExecutions, queryInvalid, resourceNotFound } from '../../core/errors.ts'
import { textFilter, type ApiRequest, type EventSink, type Route } from '../../http/index.ts'
import {
  AnnouncementEvent,
  executionAttributeQuery,
  ExecutionRecord,
  LiveactionEvent,
  OutputEvent,
  outputTypeOf,
  wantedAttributes,
  type Executions,
} from '../executions/index.ts'
import { AliasRecord } from '../aliases/index.ts'
import type { Execution } from '../executions/types.ts'
import { followOutput, type Wakeups } from './execution-output.ts'
import { outputEvent, parsePosition, type Position } from './frames.ts'
import { contentEvent, defaultEvents, type ExecutionParts, type GeneralStream, type StreamFilter } from './general.ts'
import { executionResource } from '../../core/permissions.ts'
import { ContentEvent } from './types.ts'
import { writeJson } from '../../lib/json/index.ts'
import { shown } from '../../lib/text/index.ts'

/** Writes one stream, until it ends. */
export type StreamRun = (sink: EventSink) => Promise<void>

export function createStreamRoutes(deps: {
  executions: Pick<Executions, 'find' | 'last' | 'statusOf' | 'outputCursor'>
  general: GeneralStream
  wakeups: Wakeups
  stopping: AbortSignal
  /** Counts a stream while it is open. */
  readonly counted: (run: StreamRun) => StreamRun
  compat: Pick<Compat, 'isOn'>
}): Route[] {
  const { executions, counted } = deps
  return [
    {
      kind: 'stream',
      surface: 'stream',
      method: 'get',
      path: '/stream',
      permission: 'stream_view',
      summary: 'Streams events from now on as server-sent events.',
      query: {
        events: { type: 'array', description: 'Event names or shell globs, in place of the default list.' },
        action_refs: { type: 'array', description: 'Only events of these actions.' },
        execution_ids: { type: 'array', description: 'Only events of these executions.' },
        parent_ids: { type: 'array', description: 'Only events of children of these executions.' },
        end_event: { type: 'string', description: 'Event name that ends the stream, with end_execution_id.' },
        end_execution_id: {
          type: 'string',
          description:
            'Execution whose final status ends the stream. With the end_event `svc.execution__update` the stream begins with what has happened already: its `running` update, its stored output, and its final update.',
        },
        // Of executions; other events have few attributes.
        ...executionAttributeQuery,
      },
      events: {
        'svc.announcement__<route>': AnnouncementEvent,
        'svc.execution__create': ExecutionRecord,
        'svc.execution__update': ExecutionRecord,
        'svc.liveaction__create': LiveactionEvent,
        'svc.liveaction__update': LiveactionEvent,
        'svc.actionalias__create': AliasRecord,
        'svc.actionalias__update': AliasRecord,
        'svc.actionalias__delete': AliasRecord,
        [outputEvent]: OutputEvent,
        [contentEvent]: ContentEvent,
      },
      handler(request) {
        const filter = filterOf(request, deps.compat.isOn)
        return counted((sink) => deps.general.run(sink, filter, request.rights))
      },
    },
    {
      kind: 'stream',
      surface: 'stream',
      method: 'get',
      path: '/executions/:id/output',
      aliases: ['/actionexecutions/:id/output'],
      permission: 'execution_view',
      alsoRequires: 'stream_view',
      resource: (request) => executionResource(pick(executions, request.params['id'] ?? '', resumePosition(request))),
      summary: 'Streams the output of one execution from its beginning, then live, then an EOF event.',
      query: {
        output_type: { type: 'string', description: '`stdout`, `stderr`, `other`; absent or `all`: everything.' },
      },
      events: { [outputEvent]: OutputEvent },
      failures: [400, 404],
      handler(request) {
        const resume = resumePosition(request)
        const execution = pick(executions, request.params['id'] ?? '', resume)
        const afterSeq = resume?.execution_id === execution.id ? resume.seq : 0
        const type = outputTypeOf(textFilter(request.query, 'output_type'))
        const event = sendsTheirs(request, deps.compat.isOn) ? theirEvent(outputEvent) : undefined
        return counted((sink) =>
          followOutput(sink, executions, deps.wakeups, { execution, type, afterSeq, stopping: deps.stopping, event }),
        )
      },
    },
  ]
}

/** @throws HEADER_INVALID: resuming from a place that is not ours would repeat or skip output silently */
function resumePosition(request: Pick<ApiRequest, 'headers'>): Position | undefined {
  const header = request.headers['last-event-id']
  if (header === undefined || header === '') return undefined
  const position = typeof header === 'string' ? parsePosition(header) : undefined
  if (position === undefined) {
    throw headerInvalid('Last-Event-ID is not an id of this stream; leave it out to read from the beginning.')
  }
  return position
}

/** A client that resumes `last` goes on with the execution it was reading, not with a newer one. */
function pick(executions: Pick<Executions, 'find' | 'last'>, id: string, resume: Position | undefined): Execution {
  const execution =
    id !== 'last'
      ? executions.find(id)
      : resume === undefined
        ? executions.last()
        : executions.find(resume.execution_id)
  if (execution !== undefined) return execution
  if (id === 'last' && resume === undefined) throw noExecutions()
  throw resourceNotFound(id)
}

const ourEventPrefix = /^svc\./

/** Whether a client that names no event gets those of StackStorm: unless it says otherwise, the option decides. */
const sendsTheirs = ({ dialect, headers }: Pick<ApiRequest, 'dialect' | 'headers'>, acceptsTheirs: boolean): boolean =>
  dialect === 'stackstorm' || (acceptsTheirs && headers['svc-dialect'] !== 'svc')

/**
 * @param acceptsTheirs with events of StackStorm, and these alone for clients that name none
 * @throws QUERY_INVALID
 */
function filterOf({ query, dialect = 'svc', headers }: ApiRequest, acceptsTheirs: boolean): StreamFilter {
  const { events, action_refs, execution_ids, parent_ids, end_event, end_execution_id } = query
  const given = Array.isArray(events) ? events : undefined
  if (!acceptsTheirs) refuseTheirs([...(given ?? []), ...(typeof end_event === 'string' ? [end_event] : [])])
  const isTheirs = (pattern: string): boolean =>
    acceptsTheirs &&
    (isTheirEventPattern(pattern) || (dialect === 'stackstorm' && ourEventPrefix.exec(pattern) === null))
  const isDefaultTheirs = given === undefined && sendsTheirs({ dialect, headers }, acceptsTheirs)
  return {
    events: isDefaultTheirs ? [] : (given?.filter((pattern) => !isTheirs(pattern)) ?? defaultEvents),
    theirEvents: isDefaultTheirs
      ? defaultEvents.map((name) => theirEvent(name) ?? name)
      : (given ?? []).filter(isTheirs),
    actionRefs: Array.isArray(action_refs) ? new Set(action_refs) : undefined,
    executionIds: Array.isArray(execution_ids) ? new Set(execution_ids) : undefined,
    parentIds: Array.isArray(parent_ids) ? new Set(parent_ids) : undefined,
    end:
      typeof end_event === 'string' && typeof end_execution_id === 'string'
        ? { event: (acceptsTheirs ? ourEvent(end_event) : undefined) ?? end_event, executionId: end_execution_id }
        : undefined,
    parts: partsOf(query),
  }
}

/** No event has such a name: a client that waits for one would wait for ever. @throws QUERY_INVALID */
function refuseTheirs(patterns: readonly string[]): void {
  const theirs = patterns.find(isTheirEventPattern)
  if (theirs === undefined) return
  throw queryInvalid(`No event is called "${shown(theirs)}". ${nameHere(ourEventPattern(theirs))}`)
}

/** @throws QUERY_INVALID */
function partsOf(query: ApiRequest['query']): ExecutionParts | undefined {
  const given = Object.keys(executionAttributeQuery).map((name) => query[name])
  if (given.every((value) => value === undefined)) return undefined
  const wanted = wantedAttributes(query)
  return { key: writeJson(given), apply: (record) => wanted.apply(record) }
}
