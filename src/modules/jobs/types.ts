/** Wire records of jobs. */
import { record, Type, type Static } from '../../lib/schema/index.ts'
import { expectationProperties, jobStateProperties, partsOf } from '../rules/index.ts'

const jobProperties = {
  id: Type.String({ description: 'Id of the rule.' }),
  ref: Type.String({ description: 'Reference of the rule.' }),
  pack: Type.String(),
  name: Type.String(),
  description: Type.String(),
  enabled: Type.Boolean(),
  trigger: Type.Object({
    type: Type.String({ description: 'Reference of the trigger type.' }),
    ref: Type.String({ description: 'Reference of the trigger.' }),
  }),
  action: Type.Object({ ref: Type.String() }),
  ...expectationProperties,
  ...jobStateProperties,
}

const example = {
  id: '67a1f0c2e4b0a1d2c3e4f50b',
  ref: 'shop.backup',
  pack: 'shop',
  name: 'backup',
  description: 'Copies the database each night.',
  enabled: true,
  trigger: { type: 'core.svc.CronTimer', ref: 'core.4a1b0c6e-4c58-4b8e-9d0a-2f7d8f6f3b11' },
  action: { ref: 'shop.backup' },
  expect: { within: '1h' },
  next_timestamp: '2030-02-01T02:00:00.000000Z',
  fired_timestamp: '2030-01-31T02:00:00.000000Z',
  last_execution_id: '67a1f0c2e4b0a1d2c3e4f506',
  last_status: 'succeeded' as const,
  last_end_timestamp: '2030-01-31T02:00:12.000000Z',
  last_success_timestamp: '2030-01-31T02:00:12.000000Z',
  expected_timestamp: '2030-02-01T03:00:00.000000Z',
}

/** A rule and how it does. */
export const JobRecord = record('Job', Type.Object(jobProperties), { example })
export type JobRecord = Static<typeof JobRecord>

/** The same in lists: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialJob = record(
  'PartialJob',
  Type.Unsafe<Partial<JobRecord>>({ type: 'object', required: ['id', 'ref'], properties: partsOf(jobProperties) }),
  { example: { id: example.id, ref: example.ref, pack: example.pack, name: example.name } },
)
