/**
 * Health checks for load balancers and supervisors, on every listener, without version and credential. `/healthz` says
 * whether the process answers, `/readyz` whether it accepts requests. Both answer while the server starts and stops,
 * and are neither counted nor logged.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { methodNotAllowed } from '../core/errors.ts'
import type { JsonSchema } from '../lib/schema/index.ts'
import { writeJson } from '../lib/json/index.ts'

export type HealthPath = '/healthz' | '/readyz'

/** @param path without query */
export const isHealthPath = (path: string): path is HealthPath => path === '/healthz' || path === '/readyz'

/**
 * Answers a health check.
 *
 * @param path without query
 * @param notReady why the server is not ready, one word for each reason: `starting`
 * @returns whether the request was a health check
 * @throws METHOD_NOT_ALLOWED
 */
export function answerHealth(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  notReady: () => readonly string[],
): boolean {
  if (!isHealthPath(path)) return false
  const { method = 'GET' } = request
  if (method !== 'GET' && method !== 'HEAD') {
    response.setHeader('Allow', 'GET')
    throw methodNotAllowed(method, ['GET'])
  }
  const reasons = path === '/readyz' ? notReady() : []
  const body = writeJson(reasons.length === 0 ? { status: 'ok' } : { status: 'unavailable', reasons })
  response.writeHead(reasons.length === 0 ? 200 : 503, {
    'Content-Type': 'application/json; charset=UTF-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'Cache-Control': 'no-store',
  })
  response.end(body)
  return true
}

/** The schema of both answers. */
export const healthSchema: JsonSchema = {
  title: 'Health',
  type: 'object',
  required: ['status'],
  properties: {
    status: { type: 'string', enum: ['ok', 'unavailable'] },
    reasons: {
      type: 'array',
      items: { type: 'string' },
      description:
        'Why it is not ready: starting, stopping, storage_full, database_gone, base_path_gone, log_not_writable, packs_gone.',
    },
  },
}

/** For the OpenAPI document. */
export const healthPaths: Readonly<Record<HealthPath, { summary: string; answers: Readonly<Record<number, string>> }>> =
  {
    '/healthz': {
      summary: 'Whether the process answers; on every listener.',
      answers: { 200: 'The process answers, also while it starts and stops.' },
    },
    '/readyz': {
      summary: 'Whether the server accepts requests; on every listener.',
      answers: { 200: 'The server accepts requests.', 503: 'The server does not accept requests; `reasons` says why.' },
    },
  }
