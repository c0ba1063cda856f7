/** Endpoints of rules (contract 05, 5.5). */
import {
  attributeQuery,
  listReply,
  pageHeaders,
  pageQuery,
  parseAttributes,
  parsePage,
  seesSecrets,
  showSecretsQuery,
  slicePage,
  Reply,
  type ApiRequest,
  type Rights,
  type Route,
} from '../../http/index.ts'
import { defaultPack } from '../../core/pack-content.ts'
import type { Actions } from '../actions/index.ts'
import type { Executions } from '../executions/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { ruleRequestSchema } from './definition.ts'
import { findAction } from './enforcement/enforce.ts'
import { parseRuleFilter, ruleFilters } from './list.ts'
import { ruleAttributes, ruleListSchema, ruleSchema, ruleViewListSchema } from './schemas.ts'
import { entityTagOf, resourceOf, type RuleService } from './service.ts'
import type { RuleStore } from './store.ts'
import type { LastEnforcement, Rule, RuleDefinition, RuleEnforcement, RuleRecord, RuleView } from './types.ts'
import { executionResource, ruleResource, type Resource } from '../../core/permissions.ts'
import type { EnforcementStore } from './enforcement/store.ts'
import { inOrder } from './in-order.ts'

/** What costs more is there for who names it. */
const onRequest = ['last_enforcement'] as const satisfies (keyof RuleView)[]

const ruleProjection = {
  known: ruleAttributes,
  excludable: ['description', 'type', 'trigger', 'criteria', 'action', 'context', 'tags'],
  always: ['id', 'ref', 'pack', 'name'],
}

const entityTagHeader = { ETag: 'Another one after each change, for `If-Match`.' }

export function createRuleRoutes(deps: {
  service: RuleService
  store: RuleStore
  enforcements: EnforcementStore
  actions: Actions
  executions: Pick<Executions, 'find' | 'statusOf'>
  triggers: Triggers
  maxPageSize: number
}): Route[] {
  const { service, store, enforcements, actions, executions, triggers, maxPageSize } = deps

  const resourceAt = ({ params }: Pick<ApiRequest, 'params'>): Resource =>
    resourceOf(service.get(params['ref_or_id'] ?? ''))

  const toRecord = (rule: Rule, request: ApiRequest): RuleRecord => service.record(rule, seesSecrets(request))

  const tagged = (rule: Rule, request: ApiRequest): Reply =>
    new Reply(toRecord(rule, request), { headers: { ETag: entityTagOf(rule) } })

  /** With what action and trigger say about themselves. */
  function toView(rule: Rule, request: ApiRequest): RuleRecord {
    const record = toRecord(rule, request)
    const action = findAction(actions, rule.action.ref)
    const trigger = triggers.find(rule.trigger.id)
    return {
      ...record,
      action: { ...record.action, description: action?.description ?? record.action.description ?? '' },
      trigger: { ...record.trigger, description: trigger?.description ?? record.trigger.description ?? '' },
    }
  }

  function toLast(whole: RuleEnforcement, rights: Rights): LastEnforcement {
    const { rule: _, ...enforcement } = whole
    const { execution_id: id } = enforcement
    if (id === undefined) return enforcement
    if (!rights.may('execution_view')) {
      const execution = executions.find(id)
      if (execution === undefined || !rights.may('execution_view', executionResource(execution))) return enforcement
    }
    const status = executions.statusOf(id)
    return status === undefined ? enforcement : { ...enforcement, execution_status: status }
  }

  async function listRules(
    request: ApiRequest,
    present: (rule: Rule, request: ApiRequest) => RuleRecord,
    further: readonly (typeof onRequest)[number][] = [],
  ): Promise<Reply> {
    const { query, principal, rights } = request
    const page = parsePage(query, principal, { defaultLimit: undefined, maxPageSize })
    const isNamed = query['include_attributes'] !== undefined
    const known = isNamed ? [...ruleAttributes, ...further] : ruleAttributes
    const projection = parseAttributes(query, { ...ruleProjection, known })
    const withLast = isNamed && projection.needed?.has('last_enforcement') === true
    let last = new Map<string, RuleEnforcement>()
    const filter = parseRuleFilter(query, (ref) => {
      const trigger = triggers.find(ref)
      return trigger?.ref === ref ? trigger.id : undefined
    })
    let ids: string[]
    let total: number
    if (rights.may('rule_view')) {
      total = store.count(filter)
      ids = await store.page(filter, page)
    } else {
      const visible = (await store.keys(filter)).filter((rule) => rights.may('rule_view', ruleResource(rule)))
      total = visible.length
      ids = slicePage(visible, page).map(({ id }) => id)
    }
    function find(some: readonly string[]): Rule[] {
      if (withLast) last = enforcements.lastOf(some)
      return store.findByIds(some)
    }
    function* records(): Generator<Record<string, unknown>> {
      for (const rule of inOrder(ids, find)) {
        if (!rights.may('rule_view', resourceOf(rule))) continue
        const view: RuleView = present(rule, request)
        const enforcement = last.get(rule.id)
        if (withLast) view.last_enforcement = enforcement === undefined ? null : toLast(enforcement, rights)
        yield projection.apply({ ...view })
      }
    }
    return listReply(records(), pageHeaders(page, total))
  }

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/rules',
      permission: 'rule_list',
      summary: 'Lists the rules that the caller may view, in the order of pack and name.',
      query: { ...ruleFilters, ...pageQuery, ...attributeQuery, ...showSecretsQuery },
      response: ruleListSchema,
      failures: [400, 403, 503],
      handler: (request) => listRules(request, toRecord),
    },
    {
      surface: 'api',
      method: 'post',
      path: '/rules',
      permission: 'rule_create',
      resourceOfBody: (body) => givenResource(body as RuleDefinition), // fits the schema
      summary: 'Makes a rule; it takes effect at once.',
      query: showSecretsQuery,
      body: ruleRequestSchema,
      status: 201,
      response: ruleSchema,
      answerHeaders: entityTagHeader,
      failures: [400, 403, 409, 503],
      async handler(request) {
        return tagged(await service.create(request, request.body as RuleDefinition), request) // fits the schema
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/rules/:ref_or_id',
      permission: 'rule_view',
      resource: resourceAt,
      summary: 'Gets one rule.',
      query: showSecretsQuery,
      response: ruleSchema,
      answerHeaders: entityTagHeader,
      failures: [404],
      handler: (request) => tagged(service.get(request.params['ref_or_id'] ?? ''), request),
    },
    {
      surface: 'api',
      method: 'put',
      path: '/rules/:ref_or_id',
      permission: 'rule_modify',
      resource: resourceAt,
      summary: 'Replaces a rule; masked values that are sent back stay as they are.',
      query: showSecretsQuery,
      headers: { 'If-Match': 'The `ETag` of the rule that is to be replaced: then nobody else’s change is.' },
      body: ruleRequestSchema,
      response: ruleSchema,
      answerHeaders: entityTagHeader,
      failures: [400, 403, 404, 409, 412, 503],
      async handler(request) {
        const body = request.body as RuleDefinition // fits the schema
        const { params, headers } = request
        return tagged(await service.update(request, params['ref_or_id'] ?? '', body, headers['if-match']), request)
      },
    },
    {
      surface: 'api',
      method: 'delete',
      path: '/rules/:ref_or_id',
      permission: 'rule_delete',
      resource: resourceAt,
      summary: 'Deletes a rule; what it has caused stays.',
      status: 204,
      response: {},
      failures: [404, 409, 503],
      async handler(request) {
        await service.delete(request, request.params['ref_or_id'] ?? '')
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/rules/views',
      permission: 'rule_list',
      summary: 'Lists rules with the descriptions of their actions and triggers.',
      query: { ...ruleFilters, ...pageQuery, ...attributeQuery, ...showSecretsQuery },
      response: ruleViewListSchema,
      failures: [400, 403, 503],
      handler: (request) => listRules(request, toView, onRequest),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/rules/views/:ref_or_id',
      permission: 'rule_view',
      resource: resourceAt,
      summary: 'Gets one rule with the descriptions of its action and trigger.',
      query: showSecretsQuery,
      response: ruleSchema,
      failures: [404],
      handler: (request) => toView(service.get(request.params['ref_or_id'] ?? ''), request),
    },
  ]
}

function givenResource({ name, pack }: RuleDefinition): Resource {
  // Whoever makes it owns it.
  const { owner: _, ...resource } = ruleResource({ ref: `${pack ?? defaultPack}.${name}`, user: '' })
  return resource
}
