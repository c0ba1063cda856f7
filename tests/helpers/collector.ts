/** A collector of OpenTelemetry that takes nothing but OTLP over HTTP in JSON, as its specification says. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface CollectedSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Record<string, unknown>
  events: { name: string; timeUnixNano: string }[]
  status: { code: number; message?: string }
  resource: Record<string, unknown>
}

export interface Collector {
  readonly url: string
  readonly spans: readonly CollectedSpan[]
  /** What was sent and is not as specified. */
  readonly broken: readonly string[]
  readonly requests: readonly IncomingHttpHeaders[]
  /** What the next requests are answered; default 200. */
  answer: { status: number; body?: string }
  stop(): Promise<void>
}

interface Attribute {
  key: string
  value: Record<string, unknown>
}

interface SentSpan extends Omit<CollectedSpan, 'attributes' | 'resource'> {
  attributes: Attribute[]
}

export async function startCollector(port = 0): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const broken: string[] = []
  const requests: IncomingHttpHeaders[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { status, body } = collector.answer
      requests.push(request.headers)
      if (request.method !== 'POST' || request.url !== '/v1/traces') broken.push(`${request.method} ${request.url}`)
      if (request.headers['content-type'] !== 'application/json') broken.push('the content type')
      if (status === 200) {
        try {
          take(JSON.parse(Buffer.concat(chunks).toString('utf8')))
        } catch (error) {
          broken.push(String(error))
        }
      }
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(body ?? '{"partialSuccess":{}}')
    })
  })

  function take(body: unknown): void {
    const { resourceSpans } = body as {
      resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { scope: object; spans: SentSpan[] }[] }[]
    } // what is not so throws
    for (const { resource, scopeSpans } of resourceSpans) {
      for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
        for (const problem of problemsOf(span)) broken.push(`${problem} in ${JSON.stringify(span)}`)
        spans.push({ ...span, attributes: valuesOf(span.attributes), resource: valuesOf(resource.attributes) })
      }
    }
  }

  const collector: Collector = {
    url: '',
    spans,
    broken,
    requests,
    answer: { status: 200 },
    async stop() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return Object.assign(collector, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }) // of a TCP server
}

function problemsOf(span: SentSpan): string[] {
  const problems: string[] = []
  const check = (holds: boolean, what: string): void => {
    if (!holds) problems.push(what)
  }
  check(/^(?!0{32})[0-9a-f]{32}$/.test(span.traceId), 'traceId')
  check(/^(?!0{16})[0-9a-f]{16}$/.test(span.spanId), 'spanId')
  check(span.parentSpanId === undefined || /^(?!0{16})[0-9a-f]{16}$/.test(span.parentSpanId), 'parentSpanId')
  check(span.parentSpanId !== span.spanId, 'its own parent')
  check(typeof span.name === 'string' && span.name !== '', 'name')
  check(Number.isInteger(span.kind) && span.kind >= 0 && span.kind <= 5, 'kind')
  for (const time of [
    span.startTimeUnixNano,
    span.endTimeUnixNano,
    ...span.events.map((event) => event.timeUnixNano),
  ]) {
    // 64-bit numbers are texts; these are of this century, so that no other unit passes for nanoseconds.
    check(/^[12]\d{18}$/.test(time), `time ${time}`)
  }
  check(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano), 'order of times')
  check([0, 1, 2].includes(span.status.code), 'status code')
  for (const { key, value } of span.attributes) {
    const [[kind, content] = [], ...more] = Object.entries(value)
    const fits =
      (kind === 'stringValue' && typeof content === 'string') ||
      (kind === 'intValue' && typeof content === 'string' && /^-?\d+$/.test(content)) ||
      (kind === 'boolValue' && typeof content === 'boolean') ||
      (kind === 'doubleValue' && typeof content === 'number')
    check(fits && more.length === 0 && key !== '', `attribute ${key}`)
  }
  return problems
}

const valuesOf = (attributes: Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
