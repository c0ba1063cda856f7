/** Endpoints of aliases of actions, and of the executions that chat commands ask for (contract 02, 2.13). */
import { queryInvalid, resourceNotFound } from '../../core/errors.ts'
import { defaultPack } from '../../core/pack-content.ts'
import { actionAliasResource, executionResource } from '../../core/permissions.ts'
import {
  allPages,
  arrange,
  contentRoutes,
  listEndpoint,
  pageQuery,
  route,
  slicePage,
  textFilter,
  type Route,
} from '../../http/index.ts'
import { createPause } from '../../lib/concurrency/index.ts'
import { Type } from '../../lib/schema/index.ts'
import { compileTemplatePattern, findAll, TemplateError } from '../../lib/template/index.ts'
import { isId } from '../../core/ids.ts'
import type { Executions } from '../executions/index.ts'
import type { Execution } from '../executions/types.ts'
import {
  AliasExecutionRecord,
  AliasExecutionRequest,
  AliasExecutions,
  MatchAndExecuteRequest,
  ReplyRecord,
} from './execution-types.ts'
import { aliasIdIn, type AliasRuns } from './execution.ts'
import { createCommandBudget } from './format.ts'
import type { Matching } from './matching.ts'
import type { Replies } from './reply.ts'
import type { AliasService } from './service.ts'
import type { AliasStore } from './store.ts'
import {
  aliasAttributes,
  AliasRecord,
  AliasRequest,
  HelpRecord,
  MatchRecord,
  MatchRequest,
  PartialAlias,
} from './types.ts'

const DEFAULT_LIMIT = 100
/** Times the characters of a display: some 50 milliseconds at worst. */
const MAX_FILTER_INSTRUCTIONS = 400

interface AliasRoutesDeps {
  service: AliasService
  store: Pick<AliasStore, 'list' | 'count'>
  matching: Matching
  runs: AliasRuns
  replies: Replies
  executions: Pick<Executions, 'find'>
  maxPageSize: number
}

export function createAliasRoutes(deps: AliasRoutesDeps): Route[] {
  return [...wordRoutes(deps), ...recordRoutes(deps), ...executionRoutes(deps)]
}

/** Before `/actionalias/:ref_or_id`, which no word of theirs is. */
function wordRoutes({ matching }: AliasRoutesDeps): Route[] {
  return [
    route({
      surface: 'api',
      method: 'post',
      path: '/actionalias/match',
      permission: 'action_alias_match',
      summary: 'Finds the alias and the format that a chat command fits.',
      body: MatchRequest,
      response: MatchRecord,
      failures: [400],
      changesNothing: true,
      async handler({ body }) {
        const { alias, display, text } = await matching.find(body.command)
        return { actionalias: alias, display, representation: text }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/actionalias/help',
      permission: 'action_alias_help',
      summary: 'Lists what chat users can say: the formats of all enabled aliases.',
      query: {
        pack: { type: 'string', description: 'Only formats of this pack.' },
        filter: { type: 'string', description: 'Only formats in which this regular expression is found.' },
        ...pageQuery,
      },
      response: HelpRecord,
      failures: [400],
      async handler({ query }): Promise<HelpRecord> {
        const pack = textFilter(query, 'pack')
        const isWanted = filterOf(textFilter(query, 'filter'))
        const seen = new Set<string>()
        const all: HelpRecord['helpstrings'] = []
        const pause = createPause()
        for (const { alias, display } of matching.all()) {
          await pause()
          const key = `${alias.ref} ${display}`
          if (display === '' || seen.has(key) || (pack !== undefined && pack !== alias.pack)) continue
          seen.add(key)
          if (isWanted(display)) all.push({ pack: alias.pack, display, description: alias.description })
        }
        const limit = query.limit === undefined || query.limit < 1 ? undefined : query.limit
        return { available: all.length, helpstrings: slicePage(all, { limit, offset: Math.max(0, query.offset ?? 0) }) }
      },
    }),
  ]
}

/** @throws QUERY_INVALID */
function filterOf(given: string | undefined): (text: string) => boolean {
  if (given === undefined) return () => true
  const budget = createCommandBudget()
  const translated = <T>(work: () => T): T => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error
      throw queryInvalid(`filter: ${error.message}.`)
    }
  }
  const pattern = translated(() => compileTemplatePattern(given, { ignoreCase: true }, budget))
  if (pattern.programSize() > MAX_FILTER_INSTRUCTIONS) {
    throw queryInvalid(
      `filter: the regular expression has more than ${MAX_FILTER_INSTRUCTIONS} instructions; write shorter repetitions.`,
    )
  }
  return (text) => translated(() => findAll(pattern, text, budget).next().done !== true)
}

function recordRoutes({ service, store, maxPageSize }: AliasRoutesDeps): Route[] {
  return [
    listEndpoint({
      path: '/actionalias',
      permission: 'action_alias_list',
      summary: 'Lists aliases of actions by pack and name.',
      record: PartialAlias,
      query: {
        pack: { type: 'string', description: 'Only aliases of this pack.' },
        name: { type: 'string', description: 'Only aliases with this name.' },
      },
      page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
      attributes: { known: aliasAttributes, excludable: [], always: ['id', 'ref', 'pack', 'name'] },
      sort: ['id', 'ref', 'pack', 'name'],
      find(request) {
        const { query, page, sort } = request
        const filter = { pack: textFilter(query, 'pack'), name: textFilter(query, 'name') }
        if (sort.length > 0) return arrange(store.list(filter, allPages), request)
        return { records: store.list(filter, page), total: store.count(filter) }
      },
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/actionalias',
      permission: 'action_alias_create',
      resourceOfBody: ({ pack, name }) => actionAliasResource(`${pack ?? defaultPack}.${name}`),
      summary: 'Creates an alias of an action.',
      body: AliasRequest,
      status: 201,
      response: AliasRecord,
      failures: [400, 403, 409, 503],
      handler: (request) => service.create(request, request.body),
      answerAgain: (_, id = '') => service.get(id),
    }),
    ...contentRoutes({
      path: '/actionalias',
      record: AliasRecord,
      request: AliasRequest,
      resourceOf: actionAliasResource,
      service,
      toRecord: (alias) => alias,
      get: { permission: 'action_alias_view', summary: 'Gets one alias of an action.' },
      put: { permission: 'action_alias_modify', summary: 'Replaces an alias of an action.' },
      delete: { permission: 'action_alias_delete', summary: 'Deletes an alias of an action.' },
    }),
  ]
}

function executionRoutes({ service, runs, replies, executions }: AliasRoutesDeps): Route[] {
  /** @throws RESOURCE_NOT_FOUND */
  function get(id: string): Execution {
    const execution = isId(id) ? executions.find(id) : undefined
    if (execution === undefined) throw resourceNotFound(id)
    return execution
  }

  /** The executions are stored, and the answer was not. @param subject their ids */
  function answersAgain(subject = ''): AliasExecutionRecord[] {
    return subject.split(',').flatMap((id) => {
      const execution = executions.find(id)
      const aliasId = aliasIdIn(execution?.context['action_alias_ref'])
      if (execution === undefined || aliasId === undefined) return []
      return [runs.recordOf(execution, service.get(aliasId))]
    })
  }

  return [
    route({
      surface: 'api',
      method: 'post',
      path: '/aliasexecution',
      permission: 'authenticated',
      summary: 'Runs the action of an alias as a chat command says. Needs `action_execute` on the action.',
      body: AliasExecutionRequest,
      status: 201,
      response: Type.Union([AliasExecutionRecord, Type.Array(AliasExecutionRecord)]),
      failures: [400, 403, 404, 503],
      async handler(request) {
        return oneOrAll(await runs.execute(request, request.body))
      },
      answerAgain: (_, id) => oneOrAll(answersAgain(id)),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/aliasexecution/match_and_execute',
      permission: 'authenticated',
      summary: 'Finds the alias that a chat command fits and runs its action. Needs `action_execute` on the action.',
      body: MatchAndExecuteRequest,
      status: 201,
      response: AliasExecutions,
      failures: [400, 403, 503],
      async handler(request) {
        return { results: await runs.matchAndExecute(request, request.body) }
      },
      answerAgain: (_, id) => ({ results: answersAgain(id) }),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/aliasexecution/:id/reply',
      permission: 'execution_view',
      resource: ({ params }) => executionResource(get(params.id)),
      summary: 'Gets what a chat is told of an execution that has ended.',
      response: ReplyRecord,
      failures: [404, 503],
      handler: ({ params, principal }) => replies.of(get(params.id), principal.user),
    }),
  ]
}

/** A format that fits several places of a command has several executions. */
function oneOrAll(answers: AliasExecutionRecord[]): AliasExecutionRecord | AliasExecutionRecord[] {
  const [first] = answers
  return first !== undefined && answers.length === 1 ? first : answers
}
