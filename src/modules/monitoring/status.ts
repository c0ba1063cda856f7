/** `GET /v1/status`: what an operator looks at first, and whether anything needs attention. */
import { statfs } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { components } from '../../core/components.ts'
import { starting } from '../../core/errors.ts'
import type { JsonRoute } from '../../http/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import { version } from '../../core/version.ts'
import type { ComponentStatus, DiskStatus, QueueStatus, ServerFacts, StatusRecord, Watch } from './types.ts'

/** The specification: the work queues should stay below this many messages. */
const QUEUE_LIMIT = 10
const QUEUE_PREFIX = 'actionrunner.queue.'
/** On average; everybody who asks waits for so long. */
const MAX_LOOP_DELAY_MS = 100
const MIN_FREE_PERCENT = 5
const PROBLEM_WITHIN_MS = 3_600_000
/** A file system that does not answer is not waited for. */
const DISK_WITHIN_MS = 2000

const integer: JsonSchema = { type: 'integer' }
const text: JsonSchema = { type: 'string' }

const statusSchema: JsonSchema = {
  title: 'Status',
  type: 'object',
  required: [
    'status',
    'attention',
    'version',
    'pid',
    'started_at',
    'uptime_seconds',
    'urls',
    'components',
    'queues',
    'event_loop',
    'disk',
    'gauges',
    'problems',
  ],
  properties: {
    status: { type: 'string', enum: ['ok', 'attention'] },
    attention: { type: 'array', items: text, description: 'What needs attention, a sentence each.' },
    version: text,
    pid: integer,
    started_at: text,
    uptime_seconds: integer,
    urls: { type: 'object', properties: { auth: text, api: text, stream: text } },
    components: {
      type: 'array',
      items: {
        type: 'object',
        required: ['name', 'about', 'state'],
        properties: {
          name: text,
          about: text,
          state: { type: 'string', enum: ['running', 'disabled', 'not_included'] },
        },
      },
    },
    queues: {
      type: 'array',
      description: 'Each should stay below its limit.',
      items: {
        type: 'object',
        required: ['name', 'length', 'limit'],
        properties: { name: text, length: integer, limit: integer },
      },
    },
    event_loop: {
      type: 'object',
      description: 'How long others had to wait in the last seconds, in milliseconds.',
      properties: { mean_ms: { type: 'number' }, p99_ms: { type: 'number' }, max_ms: { type: 'number' } },
    },
    disk: {
      type: ['object', 'null'],
      description: 'Of the file system of the base path; null when it does not answer.',
      properties: { free_bytes: integer, total_bytes: integer, free_inodes: integer, total_inodes: integer },
    },
    gauges: {
      type: 'object',
      additionalProperties: { type: 'number' },
      description: 'Every gauge, as in the metrics.',
    },
    problems: {
      type: 'array',
      description: 'The last messages at WARNING or above, oldest first.',
      items: {
        type: 'object',
        properties: { timestamp: text, level: text, event: text, message: text, line: text },
      },
    },
  },
}

/** @param server known before the first request */
export function createStatusRoute(watch: Watch, server: () => ServerFacts | undefined): JsonRoute {
  return {
    surface: 'api',
    method: 'get',
    path: '/status',
    permission: 'administrator',
    summary: 'How the server is: its parts, queues, load, disk and last problems, and what needs attention.',
    response: statusSchema,
    handler() {
      const facts = server()
      if (facts === undefined) throw starting()
      return readStatus(watch, facts)
    },
  }
}

async function readStatus(watch: Watch, server: ServerFacts): Promise<StatusRecord> {
  const disk = await readDisk(server.basePath)
  const readings = watch.readings()
  const queues = readings.flatMap(({ key, value }): QueueStatus[] =>
    key.startsWith(QUEUE_PREFIX) ? [{ name: key.slice(QUEUE_PREFIX.length), length: value, limit: QUEUE_LIMIT }] : [],
  )
  const { mean, p99, max } = watch.loopDelay()
  const problems = watch.lastProblems()
  const errors = problems.filter(
    ({ level, timestamp }) => level !== 'WARNING' && Date.now() - Date.parse(timestamp) < PROBLEM_WITHIN_MS,
  )
  const attention = [
    ...server.notReady().map((reason) => `The server is not ready: ${reason}.`),
    ...queues
      .filter(({ length, limit }) => length >= limit)
      .map(({ name, length, limit }) => `The queue "${name}" has ${length} messages; it should stay below ${limit}.`),
    ...(mean < MAX_LOOP_DELAY_MS
      ? []
      : [`The event loop keeps requests waiting, for ${Math.round(mean)} ms on average.`]),
    ...(disk === undefined ? ['The file system of the base path does not answer.'] : roomNeeded(disk)),
    ...(errors.length === 0 ? [] : [`Within the last hour ${counted(errors.length)} logged; see the last problems.`]),
  ]
  return {
    status: attention.length === 0 ? 'ok' : 'attention',
    attention,
    version,
    pid: process.pid,
    started_at: server.startedAt,
    uptime_seconds: Math.floor(process.uptime()),
    urls: server.urls(),
    components: components.map(({ name, about, module }) => ({ name, about, state: stateOf(module, server) })),
    queues,
    event_loop: { mean_ms: rounded(mean), p99_ms: rounded(p99), max_ms: rounded(max) },
    disk: disk ?? null,
    gauges: Object.fromEntries(readings.map(({ key, value }) => [key, value])),
    problems,
  }
}

const counted = (errors: number): string => (errors === 1 ? 'one error was' : `${errors} errors were`)

const rounded = (milliseconds: number): number => Math.round(milliseconds * 100) / 100

function stateOf(module: string | undefined, { modules }: ServerFacts): ComponentStatus['state'] {
  const found = modules.find(({ name }) => name === module)
  if (found === undefined) return 'not_included'
  return found.isOff === true ? 'disabled' : 'running'
}

async function readDisk(path: string): Promise<DiskStatus | undefined> {
  const read = statfs(path).then(
    ({ bavail, bsize, blocks, ffree, files }): DiskStatus => ({
      free_bytes: bavail * bsize,
      total_bytes: blocks * bsize,
      free_inodes: ffree,
      total_inodes: files,
    }),
    () => undefined,
  )
  return Promise.race([read, delay(DISK_WITHIN_MS, undefined, { ref: false })])
}

/** File systems that make inodes as they are needed tell of none. */
function roomNeeded(disk: DiskStatus): string[] {
  const isShort = (free: number, total: number): boolean => total > 0 && (free * 100) / total < MIN_FREE_PERCENT
  return [
    ...(isShort(disk.free_bytes, disk.total_bytes)
      ? [`The disk is almost full: less than ${MIN_FREE_PERCENT} % of its bytes are free.`]
      : []),
    ...(isShort(disk.free_inodes, disk.total_inodes)
      ? [`The disk is almost full: less than ${MIN_FREE_PERCENT} % of its inodes are free.`]
      : []),
  ]
}
