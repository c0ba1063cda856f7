/** Endpoints of jobs: rules with how they do. */
import { listEndpoint, route, type AttributeOptions, type Route } from '../../http/index.ts'
import { resourceOf, ruleFilters, type JobState, type Rules } from '../rules/index.ts'
import type { Rule } from '../rules/types.ts'
import type { JobRecords } from './records.ts'
import { JobRecord, PartialJob } from './types.ts'

const always = ['id', 'ref', 'pack', 'name']

const attributes: AttributeOptions = {
  known: Object.keys(JobRecord.properties),
  excludable: Object.keys(JobRecord.properties).filter((name) => !always.includes(name)),
  always,
}

export function createJobRoutes(deps: {
  rules: Pick<Rules, 'get' | 'list'>
  records: JobRecords
  /** Ids of the rules that are late. */
  readonly lateRules: () => string[]
  maxPageSize: number
}): Route[] {
  const { rules, records, lateRules, maxPageSize } = deps
  return [
    listEndpoint({
      path: '/jobs',
      permission: 'rule_list',
      summary: 'Lists the rules that the caller can view with how they do as jobs, by pack and name.',
      record: PartialJob,
      query: { ...ruleFilters, late: { type: 'boolean', description: 'True: only rules that are late.' } },
      page: { defaultLimit: undefined, maxPageSize },
      attributes,
      async find({ query, rights, page }) {
        let states = new Map<string, JobState>()
        const onRead = (some: readonly Rule[]): void => {
          states = records.statesOf(some)
        }
        const { records: found, total } = await rules.list({
          query,
          rights,
          page,
          onRead,
          ...(query.late === true ? { among: lateRules() } : {}),
        })
        function* jobs(): Generator<JobRecord> {
          for (const rule of found) yield records.record(rule, states.get(rule.id))
        }
        return { records: jobs(), total }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/jobs/:ref_or_id',
      permission: 'rule_view',
      resource: ({ params }) => resourceOf(rules.get(params.ref_or_id)),
      summary: 'Gets one rule with how it does as a job.',
      response: JobRecord,
      failures: [404],
      handler({ params }) {
        const rule = rules.get(params.ref_or_id)
        return records.record(rule, records.statesOf([rule]).get(rule.id))
      },
    }),
  ]
}
