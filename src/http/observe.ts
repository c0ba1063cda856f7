/** What each request leaves behind: two lines in the log, one when it comes and one when it is over, and measurements. */
import type { Request, Response } from 'express'
import { type Log, secretMask } from '../lib/log/index.ts'
import type { Metrics } from '../core/metrics.ts'
import type { Route, Surface } from './route.ts'

/** A request while it is answered. */
export interface Observation {
  /** The route that answers. */
  routed(route: Pick<Route, 'surface' | 'path'>): void
  /** Who asks, once it is known. */
  user: string | undefined
}

export interface ObserveOptions {
  log: Log
  metrics: Metrics
  /** Who sends it. */
  readonly addressOf: (request: Request) => string
}

/** For requests that are too many and say too little. */
export const notObserved = (): Observation => ({ user: undefined, routed: () => undefined })

/** @param surface of the listener that has received it */
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
    // A client that has gone before it was answered leaves none.
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
 * Credentials masked: those of the query by their names, those in the path by how they look. Of conditions about parameters
 * and results, any of which may be secret, only the names are shown, and what is searched for in output is not.
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

/** API keys and tokens are longer than any id. References, which may be as long, have a dot, and tokens two. */
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
