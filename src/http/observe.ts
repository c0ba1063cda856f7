/** Observes each request: one log line when it arrives, one when it ends, and measurements. */
import type { Request, Response } from 'express'
import { type Log, secretMask } from '../lib/log/index.ts'
import type { Metrics } from '../core/metrics.ts'
import type { Route, Surface } from './route.ts'

/** A request while it is answered. */
export interface Observation {
  /** The route that answers. */
  routed(route: Pick<Route, 'surface' | 'path'>): void
  /** The user name, once it is known. */
  user: string | undefined
}

export interface ObserveOptions {
  log: Log
  metrics: Metrics
  /** The address of the client. */
  readonly addressOf: (request: Request) => string
}

/** For health checks: frequent, and of no interest in the log or the metrics. */
export const notObserved = (): Observation => ({ user: undefined, routed: () => undefined })

/** @param surface of the listener that received it */
export function observe(
  { log, metrics, addressOf }: ObserveOptions,
  request: Request,
  response: Response,
  { requestId, surface }: { requestId: string; surface: Surface },
): Observation {
  const begun = performance.now()
  const { method } = request
  let labels = { surface: surface as string, method, route: '' }
  const isLogged = log.enabled('INFO')
  if (isLogged) {
    log.info('request.received', 'Request received', {
      request_id: requestId,
      method,
      ...shownAddress(log, request.url),
      remote_address: addressOf(request),
    })
  }
  const observation: Observation = {
    user: undefined,
    routed(route) {
      labels = { surface: route.surface, method, route: route.path }
      metrics.count('http.request', labels)
    },
  }
  response.once('close', () => {
    const milliseconds = performance.now() - begun
    // A client that disconnects before its answer gets no status.
    const status = response.headersSent ? String(response.statusCode) : 'none'
    metrics.time('http.response', { ...labels, status }, milliseconds)
    if (!isLogged) return
    log.info('request.answered', 'Request answered', {
      request_id: requestId,
      status: response.headersSent ? response.statusCode : undefined,
      duration_ms: Math.round(milliseconds * 1000) / 1000,
      user: observation.user === '' ? undefined : observation.user,
      ...(response.writableFinished ? {} : { is_cut: true }),
    })
  })
  return observation
}

/**
 * The path and the query with credentials masked: in the query by name, in the path by pattern. Filters by parameters,
 * results and output may hold secrets, so only the names of parameters are shown.
 */
function shownAddress(log: Log, url: string): { path: string; query?: string } {
  const masked = log.maskUrl(url)
  const mark = masked.indexOf('?')
  const path = maskPath(mark === -1 ? masked : masked.slice(0, mark))
  return mark === -1 ? { path } : { path, query: maskConditions(masked.slice(mark + 1)) }
}

const conditionOnContent = /^((?:liveaction\.)?(?:parameters|result)[^:]*:)/

function maskConditions(query: string): string {
  const masked = query.replace(/(?<=^|&)query=[^&]*/g, `query=${secretMask}`)
  return masked.replace(/(?<=^|&)filter=([^&]*)/g, (_, conditions: string) => {
    const shown = conditions.split(/(\+|%20|%09|%0[ad])/i).map((condition) => {
      const [, name] = conditionOnContent.exec(decoded(condition)) ?? []
      return name === undefined ? condition : name + secretMask
    })
    return `filter=${shown.join('')}`
  })
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** API keys and tokens are longer than any id. References may be as long but have one dot; tokens have two. */
const credentialLike = /^(?:[\w-]{33,}|[\w-]+\.[\w-]+\.[\w-]{20,})$/
const id = /^[0-9a-f]{24}$/

function maskPath(path: string): string {
  if (path.length < 33 && !path.includes('/apikeys/')) return path
  return path
    .split('/')
    .map((segment, i, all) => {
      const isOfKey = all[i - 1] === 'apikeys' && !id.test(segment)
      return isOfKey || credentialLike.test(segment) ? secretMask : segment
    })
    .join('/')
}
