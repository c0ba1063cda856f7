/**
 * Exports spans to an OpenTelemetry collector by OTLP over HTTP in JSON (opentelemetry.io/docs/specs/otlp). Own code,
 * because the format is short and the SDK has 71 packages, 50 MB on disk and 35 MB of memory.
 *
 * Sends one request at a time. Spans that the collector does not accept now wait in a bounded buffer.
 */
import { hostname } from 'node:os'
import type { Log } from '../../../lib/log/index.ts'
import { version } from '../../../core/version.ts'
import { readJson, writeJson } from '../../../lib/json/index.ts'

export type AttributeValue = string | number | boolean

export interface TraceSpan {
  /** 32 hexadecimal digits; span ids have 16. */
  traceId: string
  spanId: string
  parentSpanId?: string | undefined
  name: string
  /** Microseconds since 1970. */
  start: number
  end: number
  attributes: Readonly<Record<string, AttributeValue | null | undefined>>
  events?: readonly { name: string; at: number }[]
  /** Undefined: unknown. */
  status?: 'ok' | 'error' | undefined
  statusMessage?: string | undefined
}

export interface Exporter {
  /** Never throws or blocks. */
  add(span: TraceSpan): void
  readonly waitingCount: number
  /** Spans dropped since the start: buffer full, or refused by the collector. */
  readonly droppedCount: number
  /** Tries once more to send the waiting spans, for at most two seconds. */
  stop(): Promise<void>
}

export interface ExporterOptions {
  /** Like `OTEL_EXPORTER_OTLP_ENDPOINT`: svc adds `/v1/traces` unless the URL ends with it. */
  endpoint: string
  headers: Readonly<Record<string, string>>
  serviceName: string
  log: Log
}

const MAX_WAITING = 10_000
const MAX_BATCH = 512
const FLUSH_MS = 1000
const REQUEST_MS = 10_000
const STOP_MS = 2000
const FIRST_RETRY_MS = 1000
const LAST_RETRY_MS = 30_000
/** Retryable statuses of the protocol; other refusals are final. */
const retried: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** `refused`: number of spans that the collector refused for good. */
interface Outcome {
  kind: 'taken' | 'refused' | 'later'
  rejected: number
  why: string
}

export function createExporter({ endpoint, headers, serviceName, log }: ExporterOptions): Exporter {
  const url = endpoint.endsWith('/v1/traces') ? endpoint : `${endpoint}/v1/traces`
  const resource = {
    attributes: attributesOf({
      'service.name': serviceName,
      'service.version': version,
      'service.instance.id': `${hostname()}:${process.pid}`,
      'host.name': hostname(),
      'process.pid': process.pid,
    }),
  }
  let waiting: TraceSpan[] = []
  let dropped = 0
  let timer: NodeJS.Timeout | undefined
  let sending: Promise<void> | undefined
  let retryMs = 0
  let isTrouble = false
  let isStopped = false

  function schedule(ms: number): void {
    if (isStopped || waiting.length === 0) return
    timer ??= setTimeout(() => {
      timer = undefined
      sending ??= sendAll().finally(() => {
        sending = undefined
        schedule(retryMs > 0 ? retryMs : FLUSH_MS)
      })
    }, ms).unref()
  }

  async function sendAll(signal?: AbortSignal): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MAX_BATCH)
      const outcome = await post(batch, signal)
      if (outcome.kind === 'later') {
        warnOnce(outcome.why)
        retryMs = Math.min(LAST_RETRY_MS, retryMs === 0 ? FIRST_RETRY_MS : retryMs * 2)
        return
      }
      waiting = waiting.slice(batch.length)
      retryMs = 0
      if (outcome.kind === 'refused') {
        dropped += outcome.rejected
        warnOnce(outcome.why)
      } else if (isTrouble) {
        isTrouble = false
        log.info('tracing.resumed', 'The collector accepts spans again', { endpoint: url, dropped })
      }
    }
  }

  /** Logs once per outage. */
  function warnOnce(why: string): void {
    if (isTrouble) return
    isTrouble = true
    log.warning('tracing.failed', 'The collector does not accept spans', { endpoint: url, reason: why })
  }

  async function post(batch: readonly TraceSpan[], signal?: AbortSignal): Promise<Outcome> {
    const body = writeJson({
      resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'svc', version }, spans: batch.map(otlpSpan) }] }],
    })
    try {
      const timeout = AbortSignal.timeout(REQUEST_MS)
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'Content-Type': 'application/json' },
        body,
        redirect: 'error',
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      })
      const text = await response.text()
      if (response.ok) return outcomeOf(text)
      const kind = retried.has(response.status) ? 'later' : 'refused'
      return { kind, rejected: batch.length, why: `it answered ${response.status}` }
    } catch (error) {
      return { kind: 'later', rejected: 0, why: reasonOf(error) }
    }
  }

  return {
    add(span) {
      if (isStopped) return
      if (waiting.length >= MAX_WAITING) {
        dropped += 1
        return
      }
      waiting.push(span)
      schedule(FLUSH_MS)
    },
    get waitingCount() {
      return waiting.length
    },
    get droppedCount() {
      return dropped
    },
    async stop() {
      if (isStopped) return
      isStopped = true
      clearTimeout(timer)
      const late = AbortSignal.timeout(STOP_MS)
      const last = (async () => {
        await sending
        await sendAll(late)
      })()
      await Promise.race([last, new Promise<void>((resolve) => late.addEventListener('abort', () => resolve()))])
      if (waiting.length > 0) {
        log.warning('tracing.lost', 'Could not export all spans before the shutdown', { lost: waiting.length })
      }
      waiting = []
    },
  }
}

function otlpSpan(span: TraceSpan): Record<string, unknown> {
  const { traceId, spanId, parentSpanId, name, attributes, events = [], status, statusMessage } = span
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name: name.toWellFormed(),
    // SPAN_KIND_INTERNAL
    kind: 1,
    startTimeUnixNano: nanoseconds(span.start),
    endTimeUnixNano: nanoseconds(Math.max(span.start, span.end)),
    attributes: attributesOf(attributes),
    events: events.map((event) => ({ timeUnixNano: nanoseconds(event.at), name: event.name })),
    status: {
      code: status === undefined ? 0 : status === 'ok' ? 1 : 2,
      ...(statusMessage === undefined ? {} : { message: statusMessage.toWellFormed() }),
    },
  }
}

/** OTLP JSON has 64-bit numbers as strings. */
const nanoseconds = (micros: number): string => `${micros}000`

const MAX_TEXT = 1000

function attributesOf(attributes: TraceSpan['attributes']): { key: string; value: Record<string, unknown> }[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined || value === null ? [] : [{ key, value: otlpValue(value) }],
  )
}

function otlpValue(value: AttributeValue): Record<string, unknown> {
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'string') return { stringValue: value.slice(0, MAX_TEXT).toWellFormed() }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

const taken: Outcome = { kind: 'taken', rejected: 0, why: '' }

/** The response body can report rejected spans. */
function outcomeOf(text: string): Outcome {
  try {
    const { partialSuccess } = readJson(text) as {
      partialSuccess?: { rejectedSpans?: string | number; errorMessage?: string }
    } // other values become NaN or 0
    const rejected = Number(partialSuccess?.rejectedSpans ?? 0)
    if (!(rejected > 0)) return taken
    const why = `it rejected ${rejected} spans: ${String(partialSuccess?.errorMessage ?? '').slice(0, 200)}`
    return { kind: 'refused', rejected, why }
  } catch {
    return taken
  }
}

/** The message of `fetch` is generic; its cause has the reason. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message || error.cause.name : error.message
}
