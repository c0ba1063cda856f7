import { queryInvalid } from '../../../core/errors.ts'
import { executionResource } from '../../../core/permissions.ts'
import { route, type QueryParameter, type Route } from '../../../http/index.ts'
import { Type } from '../../../lib/schema/index.ts'
import { outputTypes, type OutputType } from '../../../runners/index.ts'
import { OutputLines, OutputMatches } from '../types.ts'
import type { ExecutionService } from '../service.ts'
import { MAX_LINES } from './lines.ts'
import type { OutputReader } from './read.ts'

/** The output of an execution: as text, by line, by search. */
export function outputRoutes(service: Pick<ExecutionService, 'getOrLast'>, output: OutputReader): Route[] {
  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/executions/:id/output',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(request.params.id)),
      summary: 'Gets the output so far as plain text; `last` is the newest execution.',
      query: { output_type: outputTypeParameter },
      response: Type.String(),
      mediaType: 'text/plain; charset=UTF-8',
      failures: [400, 404],
      handler(request) {
        const { id } = service.getOrLast(request.params.id)
        const type = outputTypeOf(request.query.output_type)
        return type === 'none' ? '' : output.text(id, type)
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/executions/:id/output/lines',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(request.params.id)),
      summary: 'Lists lines of the output so far, numbered as in its text; `last` is the newest execution.',
      query: {
        output_type: outputTypeParameter,
        from: {
          type: 'integer',
          description:
            'Number of the first line. Default: 1. Negative numbers count from the end: -1 is the last line.',
        },
        limit: {
          type: 'integer',
          description: `Most lines to return, up to ${MAX_LINES}. Default: 100. Long lines make an answer shorter.`,
        },
        offset: {
          type: 'integer',
          description: 'Bytes of the first line to skip, such as `next_offset`.',
        },
      },
      response: OutputLines,
      failures: [400, 404],
      handler(request) {
        const { from, limit, offset } = readLinesQuery(request.query)
        const { id } = service.getOrLast(request.params.id)
        return output.lines(id, { type: outputTypeOf(request.query.output_type), from, limit, offset })
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/executions/:id/output/search',
      permission: 'execution_view',
      resource: (request) => executionResource(service.getOrLast(request.params.id)),
      summary: 'Searches the output. Each request searches a part: continue with `next` until `is_at_end`.',
      query: {
        query: { type: 'string', description: 'Text or pattern to find within one line.', required: true },
        output_type: outputTypeParameter,
        ignore_case: { type: 'boolean', description: 'Ignores upper and lower case.' },
        is_pattern: { type: 'boolean', description: '`query` is a regular expression in RE2 syntax.' },
        from: { type: 'integer', description: 'Number of the line to start at. Default: 1.' },
        offset: { type: 'integer', description: 'Bytes of that line to skip.' },
        limit: { type: 'integer', description: `Most matching lines to return, up to ${MAX_LINES}. Default: 100.` },
      },
      response: OutputMatches,
      failures: [400, 404],
      handler(request) {
        const { from, limit, offset } = readLinesQuery(request.query)
        if (from < 1) throw queryInvalid('Parameter "from" must be 1 or more')
        const { query, ignore_case: ignoreCase, is_pattern: isPattern } = request.query
        const { id } = service.getOrLast(request.params.id)
        return output.search(id, {
          type: outputTypeOf(request.query.output_type),
          query,
          ignoreCase: ignoreCase === true,
          isPattern: isPattern === true,
          from,
          offset,
          limit,
        })
      },
    }),
  ]
}

const outputTypeParameter = {
  type: 'string',
  description: '`stdout`, `stderr`, `other`; absent or `all`: everything.',
} as const satisfies QueryParameter

/** Undefined: all. `none`: a type that no record has. */
export function outputTypeOf(type: string | undefined): OutputType | undefined | 'none' {
  if (type === undefined || type === '' || type === 'all') return undefined
  return outputTypes.find((known) => known === type) ?? 'none'
}

/** @throws QUERY_INVALID */
function readLinesQuery({ from = 1, limit = 100, offset = 0 }: { from?: number; limit?: number; offset?: number }): {
  from: number
  limit: number
  offset: number
} {
  if (from === 0) throw queryInvalid('Parameter "from" is 0: the first line has the number 1, the last one -1')
  if (limit < 1 || limit > MAX_LINES) throw queryInvalid(`Parameter "limit" must be from 1 to ${MAX_LINES}`)
  if (offset < 0) throw queryInvalid('Parameter "offset" must not be negative')
  return { from, limit, offset }
}
