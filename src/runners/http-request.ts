/** Sends an HTTP request and returns the response (contract 03, 3.6, 3.8 and 3.9). */
import { createAddresses, type LookupAll } from './http/addresses.ts'
import { exchange, HttpProblem, type HttpAnswer } from './http/exchange.ts'
import { buildRequest, isJson } from './http/request.ts'
import { onDeadline } from './process/deadline.ts'
import type { RunContext, Runner, RunResult } from './runner.ts'
import { nearestNumber, readJson } from '../lib/json/index.ts'

export interface HttpRequestSettings {
  /** `http_runner.allowed_private_networks` */
  allowedPrivateNetworks: readonly string[]
  /** `http_runner.max_body_bytes`: limit of the decompressed response body, and of a file to send. */
  maxBodyBytes: number
  /** Default: the resolver of the system. */
  lookup?: LookupAll
}

const DEFAULT_TIMEOUT_SECONDS = 60

export function createHttpRequest(settings: HttpRequestSettings): Runner {
  const addresses = createAddresses(settings.allowedPrivateNetworks, settings.lookup)
  const { maxBodyBytes } = settings

  async function run(context: RunContext): Promise<RunResult> {
    const timeoutSeconds = nearestNumber(context.actionParameters['timeout']) ?? DEFAULT_TIMEOUT_SECONDS
    if (typeof timeoutSeconds !== 'number' || !(timeoutSeconds >= 0)) {
      return failed(new HttpProblem('The parameter "timeout" must be 0 (no limit) or a positive number of seconds'))
    }
    const timeUp = new AbortController()
    const clearDeadline = timeoutSeconds > 0 ? onDeadline(timeoutSeconds * 1000, () => timeUp.abort()) : undefined
    const signal = AbortSignal.any([context.signal, timeUp.signal])
    try {
      const request = await buildRequest(context, maxBodyBytes)
      if (signal.aborted) return failed(new HttpProblem('The request was stopped before it started'))
      const limits = { addresses, maxBodyBytes, maxBodyName: 'http_runner.max_body_bytes', signal }
      const answer = await exchange(request, limits)
      const isSuccess = answer.statusCode >= 200 && answer.statusCode <= 206
      return { status: isSuccess ? 'succeeded' : 'failed', result: resultOf(answer) }
    } catch (error) {
      if (context.signal.aborted) return failed(new HttpProblem('The request was stopped'))
      if (timeUp.signal.aborted) {
        return { status: 'timeout', result: { error: `Action failed to complete in ${timeoutSeconds} seconds` } }
      }
      if (error instanceof HttpProblem) return failed(error)
      throw error
    } finally {
      clearDeadline?.()
    }
  }

  return {
    definition: {
      name: 'http-request',
      description: 'Sends an HTTP request from the host of the server.',
      enabled: true,
      runner_package: 'http_runner',
      runner_module: 'http_runner',
      output_key: 'body',
      output_schema: {
        status_code: { type: 'integer' },
        body: {
          anyOf: [
            { type: 'object' },
            { type: 'string' },
            { type: 'array' },
            { type: 'number' },
            { type: 'boolean' },
            { type: 'null' },
          ],
        },
        parsed: { type: 'boolean' },
        headers: { type: 'object' },
      },
      runner_parameters: {
        url: { type: 'string', required: true, description: 'URL to send the request to: http or https.' },
        headers: { type: 'object', description: 'Headers of the request. Values become text.' },
        cookies: { type: 'object', description: 'Cookies to send with the request.' },
        allow_redirects: {
          type: 'boolean',
          default: false,
          description: 'Follow at most 10 redirects. Credentials, cookies and headers are not sent to other origins.',
        },
        http_proxy: { type: 'string', description: 'URL of the proxy for http URLs.' },
        https_proxy: { type: 'string', description: 'URL of the proxy for https URLs.' },
        username: { type: 'string', description: 'User name for basic authentication.' },
        password: { type: 'string', secret: true, description: 'Password for basic authentication.' },
        verify_ssl_cert: {
          type: 'boolean',
          default: true,
          description: 'Refuse hosts with an untrusted certificate.',
        },
        url_hosts_blacklist: {
          type: 'array',
          items: { type: 'string' },
          description: 'Hosts that requests must not reach. Cannot be combined with url_hosts_whitelist.',
        },
        url_hosts_whitelist: {
          type: 'array',
          items: { type: 'string' },
          description: 'The only hosts that requests can reach. Cannot be combined with url_hosts_blacklist.',
        },
      },
    },
    run,
  }
}

function failed(problem: HttpProblem): RunResult {
  return { status: 'failed', result: { error: problem.message, traceback: `${problem.name}: ${problem.message}` } }
}

function resultOf({ statusCode, headers, contentType, body }: HttpAnswer): Record<string, unknown> {
  const text = decode(body, contentType)
  if (isJson(contentType)) {
    try {
      return { status_code: statusCode, body: readJson(text), parsed: true, headers }
    } catch {
      // The content type is JSON, the body is not.
    }
  }
  return { status_code: statusCode, body: text, parsed: false, headers }
}

/** Replaces bytes that are invalid in the charset. */
function decode(body: Buffer, contentType = ''): string {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    return new TextDecoder().decode(body)
  }
}
