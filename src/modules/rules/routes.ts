/** Endpoints of rules (contract 05, 5.5). */
import {
  listEndpoint,
  Reply,
  route,
  seesSecrets,
  showSecretsQuery,
  type ApiRequest,
  type AttributeOptions,
  type Found,
  type Page,
  type Projection,
  type Rights,
  type Route,
} from '../../http/index.ts'
import { defaultPack } from '../../core/pack-content.ts'
import type { Actions } from '../actions/index.ts'
import type { Executions } from '../executions/index.ts'
import { isTimerType, type Triggers } from '../triggers/index.ts'
import { findRuleAction } from './enforcement/enforce.ts'
import { ruleFilters, type RuleQuery } from './list.ts'
import type { FindRules } from './page.ts'
import type { RuleJobs, RulesPorts } from './ports.ts'
import { entityTagOf, resourceOf, type RuleService } from './service.ts'
import {
  onRequestAttributes,
  PartialRule,
  PartialRuleView,
  ruleAttributes,
  RuleRecord,
  RuleRequest,
  type LastEnforcement,
  type Rule,
  type RuleEnforcement,
  RuleView,
} from './types.ts'
import { executionResource, ruleResource, type Resource } from '../../core/permissions.ts'
import type { ReasonFor } from './enforcement/reason.ts'
import type { EnforcementStore } from './enforcement/store.ts'

const attributes: AttributeOptions = {
  known: ruleAttributes,
  excludable: ['description', 'type', 'trigger', 'criteria', 'action', 'context', 'tags'],
  always: ['id', 'ref', 'pack', 'name'],
}

const runAttributes = ['next_run', 'previous_run', 'next_runs'] as const
type RunAttribute = (typeof runAttributes)[number]
/** Times in `next_runs`. */
const MAX_RUNS = 5

const entityTagHeader = { ETag: 'Differs after each change of the rule. Send it as `If-Match`.' }

export function createRuleRoutes(deps: {
  service: RuleService
  readonly find: FindRules
  enforcements: EnforcementStore
  actions: Actions
  executions: Pick<Executions, 'find' | 'statusOf'>
  triggers: Triggers
  readonly reasonFor: ReasonFor
  jobs: RuleJobs
  readonly timesOf: RulesPorts['timesOf']
  maxPageSize: number
}): Route[] {
  const { service, find, enforcements, actions, executions, triggers, reasonFor, jobs, timesOf, maxPageSize } = deps

  type Request = Omit<ApiRequest, 'body' | 'params' | 'query'> & { query: { show_secrets?: boolean } }
  interface Named {
    params: { ref_or_id: string }
  }

  const resourceAt = ({ params }: Named): Resource => resourceOf(service.get(params.ref_or_id))

  const toRecord = (rule: Rule, request: Request): RuleRecord => service.record(rule, seesSecrets(request))

  const tagged = (rule: Rule, request: Request): Reply =>
    new Reply(toRecord(rule, request), { headers: { ETag: entityTagOf(rule) } })

  /** The rule with the descriptions of its action and its trigger. */
  function toView(rule: Rule, request: Request): RuleRecord {
    const record = toRecord(rule, request)
    const action = findRuleAction(actions, rule.action.ref)
    const trigger = triggers.find(rule.trigger.id)
    return {
      ...record,
      action: { ...record.action, description: action?.description ?? record.action.description ?? '' },
      trigger: { ...record.trigger, description: trigger?.description ?? '' },
    }
  }

  /** When the timer of a rule fires. */
  function runsOf({ trigger, enabled }: Rule, count: number): Pick<RuleView, RunAttribute> {
    const { next = null, previous = null, runs = [] } = timesOf(trigger.id, count) ?? {}
    return { next_run: enabled ? next : null, previous_run: previous, next_runs: enabled ? runs : [] }
  }

  function toLast(whole: RuleEnforcement, rights: Rights): LastEnforcement {
    const { rule: _, ...enforcement } = reasonFor(whole, rights)
    const { execution_id: id } = enforcement
    if (id === undefined) return enforcement
    if (!rights.may('execution_view')) {
      const execution = executions.find(id)
      if (execution === undefined || !rights.may('execution_view', executionResource(execution))) return enforcement
    }
    const status = executions.statusOf(id)
    return status === undefined ? enforcement : { ...enforcement, execution_status: status }
  }

  async function findRules(
    request: Request & { query: RuleQuery; page: Page; projection: Projection },
    present: (rule: Rule, request: Request) => RuleRecord,
  ): Promise<Found<RuleView>> {
    const { rights, projection } = request
    const withLast = projection.needed?.has('last_enforcement') === true
    const withJob = projection.needed?.has('job') === true
    const withRuns = runAttributes.some((name) => projection.needed?.has(name) === true)
    const runCount = projection.needed?.has('next_runs') === true ? MAX_RUNS : 0
    let last = new Map<string, RuleEnforcement>()
    let states: ReturnType<RuleJobs['statesOf']> = new Map()
    const onRead = (some: readonly Rule[]): void => {
      if (withLast) last = enforcements.lastOf(some.map(({ id }) => id))
      if (withJob) states = jobs.statesOf(some)
    }
    const { records: rules, total } = await find({ ...request, onRead })
    function* records(): Generator<RuleView> {
      for (const rule of rules) {
        const view: RuleView = { ...present(rule, request), ...(withRuns ? runsOf(rule, runCount) : {}) }
        const enforcement = last.get(rule.id)
        if (withLast) view.last_enforcement = enforcement === undefined ? null : toLast(enforcement, rights)
        if (withJob) view.job = states.get(rule.id) ?? {}
        yield view
      }
    }
    return { records: records(), total }
  }

  return [
    listEndpoint({
      path: '/rules',
      permission: 'rule_list',
      summary: 'Lists the rules that the caller can view, by pack and name.',
      record: PartialRule,
      query: { ...ruleFilters, ...showSecretsQuery },
      page: { defaultLimit: undefined, maxPageSize },
      attributes,
      find: (request) => findRules(request, toRecord),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/rules',
      permission: 'rule_create',
      resourceOfBody: givenResource,
      summary: 'Creates a rule. It takes effect at once.',
      query: showSecretsQuery,
      body: RuleRequest,
      status: 201,
      response: RuleRecord,
      answerHeaders: entityTagHeader,
      failures: [400, 403, 409, 503],
      async handler(request) {
        return tagged(await service.create(request, request.body), request)
      },
      answerAgain: (request, id = '') => tagged(service.get(id), request),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/rules/:ref_or_id',
      permission: 'rule_view',
      resource: resourceAt,
      summary: 'Gets one rule.',
      query: showSecretsQuery,
      response: RuleRecord,
      answerHeaders: entityTagHeader,
      failures: [404],
      handler: (request) => tagged(service.get(request.params.ref_or_id), request),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/rules/:ref_or_id',
      permission: 'rule_modify',
      resource: resourceAt,
      summary: 'Replaces a rule. A mask keeps the stored value.',
      query: showSecretsQuery,
      headers: { 'If-Match': '`ETag` of the rule: the request fails with 412 if the rule has changed since.' },
      body: RuleRequest,
      response: RuleRecord,
      answerHeaders: entityTagHeader,
      failures: [400, 403, 404, 409, 412, 503],
      async handler(request) {
        const { params, body, headers } = request
        return tagged(await service.update(request, params.ref_or_id, body, headers['if-match']), request)
      },
      answerAgain: (request, id = request.params.ref_or_id) => tagged(service.get(id), request),
    }),
    route({
      surface: 'api',
      method: 'delete',
      path: '/rules/:ref_or_id',
      permission: 'rule_delete',
      resource: resourceAt,
      summary: 'Deletes a rule. Its enforcements and executions stay.',
      status: 204,
      response: {},
      failures: [404, 409, 503],
      async handler(request) {
        await service.delete(request, request.params.ref_or_id)
      },
    }),
    listEndpoint({
      path: '/rules/views',
      permission: 'rule_list',
      summary: 'Lists rules with the descriptions of their actions and triggers.',
      record: PartialRuleView,
      query: { ...ruleFilters, ...showSecretsQuery },
      page: { defaultLimit: undefined, maxPageSize },
      attributes: ({ include_attributes: named }) =>
        named === undefined ? attributes : { ...attributes, known: [...ruleAttributes, ...onRequestAttributes] },
      find: (request) => findRules(request, toView),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/rules/views/:ref_or_id',
      permission: 'rule_view',
      resource: resourceAt,
      summary: 'Gets one rule with the descriptions of its action and trigger.',
      query: showSecretsQuery,
      response: RuleView,
      failures: [404],
      handler(request) {
        const rule = service.get(request.params.ref_or_id)
        return { ...toView(rule, request), ...(isTimerType(rule.trigger.type) ? runsOf(rule, MAX_RUNS) : {}) }
      },
    }),
  ]
}

function givenResource({ name, pack }: RuleRequest): Resource {
  // The caller becomes the owner.
  const { owner: _, ...resource } = ruleResource({ ref: `${pack ?? defaultPack}.${name}`, user: '' })
  return resource
}
