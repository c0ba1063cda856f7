/** Endpoints of what rules are made of: rule types, and operators of criteria. */
import { resourceNotFound } from '../../core/errors.ts'
import { pageHeaders, Reply, type Route } from '../../http/index.ts'
import { operatorSchema, ruleTypeSchema } from './schemas.ts'
import { operatorRecords } from './criteria/operators.ts'

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

export const referenceRoutes: readonly Route[] = [
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
