/** `GET /v1/status`: the state of the server, and the conditions that need attention. */
import { statfs } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { components } from '../../core/components.ts'
import { starting } from '../../core/errors.ts'
import { route, type Route } from '../../http/index.ts'
import { version } from '../../core/version.ts'
import {
  StatusRecord,
  type ComponentStatus,
  type DiskStatus,
  type QueueStatus,
  type ServerFacts,
  type StatusSource,
} from './types.ts'

/** Recommended maximum length of work queues in the specification. */
const QUEUE_LIMIT = 10
const QUEUE_PREFIX = 'actionrunner.queue.'
/** Maximum mean delay; every request waits that long. */
const MAX_LOOP_DELAY_MS = 100
const MIN_FREE_PERCENT = 5
const RECENT_PROBLEM_MS = 3_600_000
/** Maximum wait for a file system that does not respond. */
const MAX_DISK_READ_MS = 2000
/** The gauge of the module `sensors`. */
const FAILED_SENSORS = 'sensorcontainer.sensors.failed'

/** @param server undefined until the server knows its modules */
export function createStatusRoute(source: StatusSource, server: () => ServerFacts | undefined): Route {
  return route({
    surface: 'api',
    method: 'get',
    path: '/status',
    permission: 'administrator',
    summary: 'Gets the state of the server: components, queues, load, disk, last problems, and what needs attention.',
    response: StatusRecord,
    handler() {
      const facts = server()
      if (facts === undefined) throw starting()
      return readStatus(source, facts)
    },
  })
}

async function readStatus(source: StatusSource, server: ServerFacts): Promise<StatusRecord> {
  const disk = await readDisk(server.basePath)
  const { commandAccount: account } = server
  const readings = source.readings()
  const queues = readings.flatMap(({ key, value }): QueueStatus[] =>
    key.startsWith(QUEUE_PREFIX) ? [{ name: key.slice(QUEUE_PREFIX.length), length: value, limit: QUEUE_LIMIT }] : [],
  )
  const { mean, p99, max } = source.loopDelay()
  const problems = source.lastProblems()
  const errors = problems.filter(
    ({ level, timestamp }) => level !== 'WARNING' && Date.now() - Date.parse(timestamp) < RECENT_PROBLEM_MS,
  )
  const notReady = server.notReady()
  const growing = source.growing()
  const cut = source.cut()
  const failedSensors = readings.find(({ key }) => key === FAILED_SENSORS)?.value ?? 0
  const attention = [
    ...notReady.map(({ reason, problem }) => `Not ready (${reason}): ${problem}`),
    ...queues
      .filter(({ length, limit }) => length >= limit)
      .map(
        ({ name, length, limit }) => `The queue "${name}" has ${length} messages; the recommended limit is ${limit}.`,
      ),
    ...(mean < MAX_LOOP_DELAY_MS ? [] : [`The event loop delays requests by ${Math.round(mean)} ms on average.`]),
    ...(disk === undefined ? ['The file system of the base path does not respond.'] : diskAttention(disk)),
    ...growing.map(
      ({ id, members }) =>
        `Trace ${id} has grown by ${members} members within a minute. If rules start each other, disable one of them.`,
    ),
    ...cut.map(
      ({ id, rule }) =>
        `Rules start each other: trace ${id} was cut at rule "${rule}". Change the criteria of the rule, or disable it.`,
    ),
    ...(failedSensors === 0
      ? []
      : [
          `${failedSensors === 1 ? '1 sensor has' : `${failedSensors} sensors have`} failed. See \`svc sensor list\`; \`svc sensor tail <ref>\` says why.`,
        ]),
    ...server.modules.flatMap((module) => module.attention?.() ?? []),
    ...(errors.length === 0 ? [] : [`${counted(errors.length)} in the last hour. See the last problems.`]),
  ]
  return {
    status: attention.length === 0 ? 'ok' : 'attention',
    not_ready: [...notReady],
    attention,
    version,
    pid: process.pid,
    started_at: server.startedAt,
    uptime_seconds: Math.floor(process.uptime()),
    urls: server.urls(),
    command_account: { user: account.user, is_root: account.isRoot, remedy: account.remedy },
    components: components.map(({ name, about, module }) => ({ name, about, state: stateOf(module, server) })),
    queues,
    event_loop: { mean_ms: rounded(mean), p99_ms: rounded(p99), max_ms: rounded(max) },
    disk: disk ?? null,
    growing_traces: [...growing],
    cut_traces: [...cut],
    gauges: Object.fromEntries(readings.map(({ key, value }) => [key, value])),
    problems: [...problems],
  }
}

const counted = (errors: number): string => (errors === 1 ? '1 logged error' : `${errors} logged errors`)

const rounded = (milliseconds: number): number => Math.round(milliseconds * 100) / 100

export function stateOf(module: string | undefined, { modules }: ServerFacts): ComponentStatus['state'] {
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
  return Promise.race([read, delay(MAX_DISK_READ_MS, undefined, { ref: false })])
}

/** File systems that create inodes on demand report a total of 0. */
function diskAttention(disk: DiskStatus): string[] {
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
