/** Endpoints of contract 05, 5.5 and 5.7, and those that say why. */
import { isolationDenied, resourceNotFound } from '../../core/errors.ts'
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
  type Projection,
  Reply,
  type ApiRequest,
  type Rights,
  type Route,
} from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import { defaultPack } from '../../core/pack-content.ts'
import { isObject } from '../../lib/schema/index.ts'
import type { Actions } from '../actions/index.ts'
import type { Executions } from '../executions/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { ruleRequestSchema } from './definition.ts'
import { findAction } from './enforce.ts'
import type { Explain } from './explain.ts'
import { enforcementFilters, parseEnforcementQuery, parseRuleFilter, ruleFilters } from './list.ts'
import {
  enforcementAttributes,
  enforcementListSchema,
  enforcementSchema,
  enforcementViewAttributes,
  enforcementViewListSchema,
  enforcementViewSchema,
  explanationSchema,
  operatorSchema,
  ruleAttributes,
  ruleListSchema,
  ruleSchema,
  ruleTypeSchema,
  ruleViewListSchema,
  testRequestSchema,
  testResultSchema,
} from './schemas.ts'
import { operatorRecords } from './operators.ts'
import { entityTagOf, isIsolated, resourceOf, type RuleService } from './service.ts'
import type { RuleStore } from './store.ts'
import type {
  LastEnforcement,
  Rule,
  RuleDefinition,
  RuleEnforcement,
  RuleEnforcementView,
  RuleRecord,
  RuleView,
  TestRequest,
} from './types.ts'
import {
  executionResource,
  ruleEnforcementResource,
  ruleResource,
  triggerResource,
  type Resource,
} from '../../core/permissions.ts'

const ENFORCEMENTS_LIMIT = 50
/** Records of a list that are read at once. */
const RECORDS_TOGETHER = 100

const ruleTypeRecords = [
  {
    id: '000000000000000000000001',
    name: 'standard',
    description: 'Fires whenever its criteria match.',
    enabled: true,
    parameters: {},
  },
  {
    id: '000000000000000000000002',
    name: 'backstop',
    description: 'Fires when its criteria match and no standard rule of the trigger does.',
    enabled: true,
    parameters: {},
  },
]

/** What costs more is there for who names it. */
const onRequest = ['last_enforcement'] as const satisfies (keyof RuleView)[]

const ruleProjection = {
  known: ruleAttributes,
  excludable: ['description', 'type', 'trigger', 'criteria', 'action', 'context', 'tags'],
  always: ['id', 'ref', 'pack', 'name'],
}

const entityTagHeader = { ETag: 'Another one after each change, for `If-Match`.' }

/** What views of enforcements show of an execution. */
const executionParts = ['id', 'runner', 'parameters', 'status'] as const

export function createRoutes(deps: {
  service: RuleService
  store: RuleStore
  explain: Explain
  actions: Actions
  executions: Pick<Executions, 'find' | 'record' | 'statusOf'>
  triggers: Triggers
  maxPageSize: number
}): Route[] {
  const { service, store, explain, actions, executions, triggers, maxPageSize } = deps

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
      if (withLast) last = store.lastEnforcements(some)
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

  /** @throws RESOURCE_NOT_FOUND; PERMISSION_DENIED with isolation, when its rule is not of the caller */
  function getEnforcement({ params, principal, rights }: Omit<ApiRequest, 'body'>): RuleEnforcement {
    const id = params['id'] ?? ''
    const enforcement = isId(id) ? store.findEnforcement(id) : undefined
    if (enforcement === undefined) throw resourceNotFound(id)
    const { rule } = enforcement
    if (isIsolated(store, enforcement, rights)) throw isolationDenied(principal.user, rule.uid)
    return enforcement
  }

  /**
   * With the parts of what it is about that the caller may view.
   *
   * @param needed what of it is read; undefined: all, payloads of megabytes too
   */
  function toEnforcementView(
    enforcement: RuleEnforcement,
    { rights }: ApiRequest,
    needed?: ReadonlySet<string>,
  ): RuleEnforcementView {
    const { trigger_instance_id: instanceId, execution_id: executionId } = enforcement
    const reads = (part: string): boolean => needed?.has(part) !== false
    const instance = reads('trigger_instance') ? triggers.findInstance(instanceId) : undefined
    const execution = executionId !== undefined && reads('execution') ? executions.find(executionId) : undefined
    const view: RuleEnforcementView = { ...enforcement }
    if (instance !== undefined && rights.may('trigger_view', triggerResource(instance.trigger_type))) {
      const { id, trigger, payload, occurrence_time, status } = instance
      view.trigger_instance = { id, trigger, payload, occurrence_time, status }
    }
    if (execution !== undefined && rights.may('execution_view', executionResource(execution))) {
      const record = executions.record(execution)
      const { action } = record
      view.execution = {
        ...Object.fromEntries(executionParts.filter((name) => name in record).map((name) => [name, record[name]])),
        action: isObject(action) ? { ref: action['ref'], parameters: action['parameters'] } : {},
      }
    }
    return view
  }

  async function listEnforcements(
    request: ApiRequest,
    known: readonly string[],
    present: (
      enforcement: RuleEnforcement,
      request: ApiRequest,
      needed: ReadonlySet<string> | undefined,
    ) => RuleEnforcement,
  ): Promise<Reply> {
    const { query, principal, rights } = request
    const page = parsePage(query, principal, { defaultLimit: ENFORCEMENTS_LIMIT, maxPageSize })
    const excludable = known.filter((name) => name !== 'id')
    const projection: Projection = parseAttributes(query, { known, excludable, always: ['id'] })
    const { filter, sort } = parseEnforcementQuery(query)
    const within = await visibleRefs(store, rights)
    if (within !== undefined) filter.within = within
    const [ids, total] = await Promise.all([
      store.pageEnforcements(filter, sort, page),
      store.countEnforcements(filter),
    ])
    function* records(): Generator<Record<string, unknown>> {
      for (const enforcement of inOrder(ids, (some) => store.findEnforcementsByIds(some))) {
        if (!rights.may('rule_enforcement_view', enforcementResource(enforcement))) continue
        // A rule of somebody else had the same name before.
        if (isIsolated(store, enforcement, rights)) continue
        yield projection.apply({ ...present(enforcement, request, projection.needed) })
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
    {
      surface: 'api',
      method: 'post',
      path: '/rules/test',
      // What is needed depends on which of them are stored: rule_view or rule_create, and trigger_view.
      permission: 'authenticated',
      summary: 'Says whether a rule would match a trigger instance, and with which parameters; runs nothing.',
      body: testRequestSchema,
      response: testResultSchema,
      failures: [400, 403, 404],
      handler: (request) => explain.test(request, request.body as TestRequest), // fits the schema
    },
    {
      surface: 'api',
      method: 'get',
      path: '/triggerinstances/:id/explain',
      permission: 'trigger_view',
      resource: ({ params }) => triggerResource(explain.instance(params['id'] ?? '').trigger_type),
      summary: 'Says for each rule of the trigger why it was enforced, or was not.',
      response: explanationSchema,
      failures: [404],
      handler: (request) => explain.explain(request, request.params['id'] ?? ''),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/ruletypes',
      permission: 'authenticated',
      summary: 'Lists the types of rules.',
      response: { type: 'array', items: ruleTypeSchema },
      handler: () =>
        new Reply(ruleTypeRecords, {
          headers: pageHeaders({ limit: undefined, offset: 0 }, ruleTypeRecords.length),
        }),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/ruletypes/:id',
      permission: 'authenticated',
      summary: 'Gets one type of rules, by id or name.',
      response: ruleTypeSchema,
      failures: [404],
      handler({ params }) {
        const given = params['id'] ?? ''
        const found = ruleTypeRecords.find(({ id, name }) => id === given || name === given)
        if (found === undefined) throw resourceNotFound(given)
        return found
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/ruleenforcements',
      permission: 'rule_enforcement_list',
      summary: 'Lists enforcements of the rules that the caller may view, newest first.',
      query: { ...enforcementFilters, ...pageQuery, ...attributeQuery },
      response: enforcementListSchema,
      failures: [400, 403, 503],
      handler: (request) => listEnforcements(request, enforcementAttributes, (enforcement) => ({ ...enforcement })),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/ruleenforcements/:id',
      permission: 'rule_enforcement_view',
      resource: (request) => enforcementResource(getEnforcement(request)),
      summary: 'Gets one rule enforcement.',
      response: enforcementSchema,
      failures: [404],
      handler: getEnforcement,
    },
    {
      surface: 'api',
      method: 'get',
      path: '/ruleenforcements/views',
      permission: 'rule_enforcement_list',
      summary: 'Lists enforcements with their trigger instances and parts of their executions.',
      query: { ...enforcementFilters, ...pageQuery, ...attributeQuery },
      response: enforcementViewListSchema,
      failures: [400, 403, 503],
      handler: (request) => listEnforcements(request, enforcementViewAttributes, toEnforcementView),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/ruleenforcements/views/:id',
      permission: 'rule_enforcement_view',
      resource: (request) => enforcementResource(getEnforcement(request)),
      summary: 'Gets one enforcement with its trigger instance and parts of its execution.',
      response: enforcementViewSchema,
      failures: [404],
      handler: (request) => toEnforcementView(getEnforcement(request), request),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/criteriaoperators',
      permission: 'authenticated',
      summary: 'Lists what criteria of rules can compare by.',
      response: { type: 'array', items: operatorSchema },
      handler: () =>
        new Reply(operatorRecords, {
          headers: pageHeaders({ limit: undefined, offset: 0 }, operatorRecords.length),
        }),
    },
  ]
}

function givenResource({ name, pack }: RuleDefinition): Resource {
  // Whoever makes it owns it.
  const { owner: _, ...resource } = ruleResource({ ref: `${pack ?? defaultPack}.${name}`, user: '' })
  return resource
}

function enforcementResource({ id, rule }: RuleEnforcement): Resource {
  return ruleEnforcementResource({ id, rule_ref: rule.ref })
}

/** Undefined: of all rules. With isolation everybody has those of own rules alone. */
async function visibleRefs(store: RuleStore, rights: Rights): Promise<string[] | undefined> {
  const user = rights.onlyOf
  if (user === undefined && rights.may('rule_enforcement_view')) return undefined
  const own = user === undefined ? undefined : new Set((await store.keys({ user })).map(({ ref }) => ref))
  return store
    .enforcedRefs()
    .filter((ref) => own?.has(ref) !== false)
    .filter((ref) => rights.may('rule_enforcement_view', ruleEnforcementResource({ id: '', rule_ref: ref })))
}

/** Few at a time: a list may be of everything there is. */
function* inOrder<T extends { id: string }>(
  ids: readonly string[],
  find: (ids: readonly string[]) => T[],
): Generator<T> {
  for (let start = 0; start < ids.length; start += RECORDS_TOGETHER) {
    const some = ids.slice(start, start + RECORDS_TOGETHER)
    const found = new Map(find(some).map((item) => [item.id, item]))
    for (const id of some) {
      const item = found.get(id)
      if (item !== undefined) yield item
    }
  }
}
