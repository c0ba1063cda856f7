/** Endpoints of rule types and of operators of criteria. */
import { resourceNotFound } from '../../core/errors.ts'
import { pageHeaders, Reply, route, type Route } from '../../http/index.ts'
import { Type } from '../../lib/schema/index.ts'
import { OperatorRecord, RuleTypeRecord } from './types.ts'
import { operatorRecords } from './criteria/operators.ts'

const ruleTypeRecords: readonly RuleTypeRecord[] = [
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

export const referenceRoutes: readonly Route[] = [
  route({
    surface: 'api',
    method: 'get',
    path: '/ruletypes',
    permission: 'authenticated',
    summary: 'Lists rule types.',
    response: Type.Array(RuleTypeRecord),
    handler: () =>
      new Reply(ruleTypeRecords, {
        headers: pageHeaders({ limit: undefined, offset: 0 }, ruleTypeRecords.length),
      }),
  }),
  route({
    surface: 'api',
    method: 'get',
    path: '/ruletypes/:id',
    permission: 'authenticated',
    summary: 'Gets one rule type by id or name.',
    response: RuleTypeRecord,
    failures: [404],
    handler({ params }) {
      const given = params.id
      const found = ruleTypeRecords.find(({ id, name }) => id === given || name === given)
      if (found === undefined) throw resourceNotFound(given)
      return found
    },
  }),
  route({
    surface: 'api',
    method: 'get',
    path: '/criteriaoperators',
    permission: 'authenticated',
    summary: 'Lists the operators of criteria.',
    response: Type.Array(OperatorRecord),
    handler: () =>
      new Reply(operatorRecords, {
        headers: pageHeaders({ limit: undefined, offset: 0 }, operatorRecords.length),
      }),
  }),
]
