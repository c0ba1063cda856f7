/**
 * Sends metrics and gauges to a statsd server by UDP, or to the log (`echo`). Never waits, fails or buffers because of
 * that server.
 */
import { lookup } from 'node:dns'
import { isIP } from 'node:net'
import { StatsD } from 'hot-shots'
import type { Log } from '../../lib/log/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import { safe, statsdKeys } from './statsd-keys.ts'
import type { GaugeReading } from './types.ts'

export interface StatsdOptions {
  driver: 'statsd' | 'echo'
  host: string
  port: number
  /** Part of each key after `svc.`; can be empty. */
  prefix: string
  /** Share of counters and timers that svc sends, marked with the rate. Gauges are always sent. */
  sampleRate: number
  /** Current readings of all gauges. */
  readonly readings: () => readonly GaugeReading[]
  log: Log
}

export interface Statsd extends Metrics {
  start(): void
  /** Sends buffered packets. */
  stop(): Promise<void>
}

/** Maximum packet size without fragmentation on Ethernet. */
const PACKET_BYTES = 1432
const FLUSH_MS = 500
/** The default flush interval of statsd servers. */
const GAUGES_MS = 10_000

interface Sender {
  count(key: string, by: number): void
  time(key: string, milliseconds: number): void
  gauge(key: string, value: number): void
  close(): Promise<void>
}

export function createStatsd(options: StatsdOptions): Statsd {
  const { driver, prefix, readings } = options
  const root = prefix === '' ? 'svc.' : `svc.${prefix}.`
  const sender = driver === 'echo' ? createEcho(options.log, root) : createSender(options, root)
  let timer: NodeJS.Timeout | undefined

  function sendGauges(): void {
    for (const { key, value } of readings()) sender.gauge(safe(key), value)
  }

  return {
    count(name, labels, by = 1) {
      for (const key of statsdKeys[name](labels).counters ?? []) sender.count(key, by)
    },
    time(name, labels, milliseconds) {
      const { counters = [], timers = [] } = statsdKeys[name](labels)
      for (const key of counters) sender.count(key, 1)
      for (const key of timers) sender.time(key, milliseconds)
    },
    start() {
      sendGauges()
      timer ??= setInterval(sendGauges, GAUGES_MS).unref()
    },
    async stop() {
      clearInterval(timer)
      await sender.close()
    },
  }
}

function createEcho(log: Log, root: string): Sender {
  const echo = (key: string, type: string, value: number): void =>
    log.info('metrics.echo', `${root}${key}`, { type, value })
  return {
    count: (key, by) => echo(key, 'counter', by),
    time: (key, milliseconds) => echo(key, 'timer', milliseconds),
    gauge: (key, value) => echo(key, 'gauge', value),
    close: () => Promise.resolve(),
  }
}

function createSender({ host, port, sampleRate, log }: StatsdOptions, root: string): Sender {
  const address = followAddress(host, log)
  const client = new StatsD({
    protocol: 'udp',
    host,
    port,
    prefix: root,
    maxBufferSize: PACKET_BYTES,
    bufferFlushInterval: FLUSH_MS,
    udpSocketOptions: { type: isIP(host) === 6 ? 'udp6' : 'udp4', lookup: address.lookup },
    errorHandler: () => undefined,
    // Otherwise environment variables add tags, which plain statsd servers do not support.
    datadog: false,
    includeDataDogTags: false,
    includeDatadogTelemetry: false,
  })
  let isClosed = false
  const isSilent = (): boolean => isClosed || sampleRate === 0
  return {
    count(key, by) {
      if (!isSilent()) client.increment(key, by, sampleRate)
    },
    time(key, milliseconds) {
      if (!isSilent()) client.timing(key, rounded(milliseconds), sampleRate)
    },
    gauge(key, value) {
      // Rate 1, because the default is the rate of the client.
      if (!isClosed) client.gauge(key, rounded(value), 1)
    },
    close() {
      if (isClosed) return Promise.resolve()
      isClosed = true
      return new Promise((resolve) => client.close(() => resolve()))
    },
  }
}

/** Rounds to microseconds. This also avoids `1e-7`, which the protocol does not allow. */
const rounded = (value: number): number => Math.round(value * 1000) / 1000

const FRESH_MS = 60_000
const RETRY_MS = 10_000

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string, family: number) => void

interface Address {
  /** Returns the cached address at once. */
  readonly lookup: (name: string, options: unknown, callback: LookupCallback) => void
}

/**
 * Resolves a host name each minute. A lookup per packet would, while the name server does not respond, occupy all
 * threads that file access and password checks need.
 */
function followAddress(host: string, log: Log): Address {
  let known: string | undefined
  let isAsking = false
  let askAt = -Infinity
  let isTrouble = false

  function ask(): void {
    if (isAsking || performance.now() < askAt) return
    isAsking = true
    lookup(host, { family: 4 }, (error, address) => {
      isAsking = false
      askAt = performance.now() + (error === null ? FRESH_MS : RETRY_MS)
      if (error === null) known = address
      if ((error !== null) === isTrouble) return
      isTrouble = error !== null
      if (isTrouble) log.warning('metrics.unreachable', 'The name in metrics.host has no address', { host, error })
      else log.info('metrics.reachable', 'The name in metrics.host has an address again', { host, address })
    })
  }

  return {
    lookup(name, _options, callback) {
      const family = isIP(name)
      if (family !== 0) {
        process.nextTick(callback, null, name, family)
        return
      }
      ask()
      if (known === undefined) process.nextTick(callback, new Error(`${host} has no address yet`), '', 4)
      else process.nextTick(callback, null, known, 4)
    },
  }
}
