import { hash, timingSafeEqual } from 'node:crypto'
import { Reply, route, type Route } from '../../http/index.ts'
import type { Prometheus } from './prometheus.ts'

export function createMonitoringRoutes({ prometheus, token }: { prometheus: Prometheus; token: string }): Route[] {
  const isToken = checkToken(token)
  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/metrics',
      permission: 'administrator',
      provesItself: ({ headers }) => isToken(headers.authorization),
      summary: 'Gets counters, timers and gauges in the Prometheus text format.',
      headers: { Authorization: '`Bearer` and the value of `metrics.prometheus_token`, in place of a credential.' },
      response: { type: 'string' },
      mediaType: prometheus.mediaType,
      async handler() {
        return new Reply(await prometheus.page(), { headers: { 'Cache-Control': 'no-store' } })
      },
    }),
  ]
}

/** An empty token matches no request. */
function checkToken(token: string): (authorization: string | undefined) => boolean {
  const digestOf = (value: string): Buffer => hash('sha256', value, 'buffer')
  const digest = token === '' ? undefined : digestOf(token)
  return (authorization = '') => {
    const [, given] = /^bearer +(\S+)$/i.exec(authorization) ?? []
    return digest !== undefined && given !== undefined && timingSafeEqual(digest, digestOf(given))
  }
}
