/** Records of rules (contract 05, 5.5–5.7): on the wire, in pack files and inside the server. */
import { executionStatuses } from '../../core/execution-status.ts'
import {
  defaultPack,
  descriptionSchema,
  MAX_NAME_CHARS,
  nameSchema,
  packSchema,
  tagsSchema,
} from '../../core/pack-content.ts'
import { givenKeepProperties, keepProperties } from '../../core/keep.ts'
import type { Scope } from '../../core/permissions.ts'
import { record, Type, type Schema, type Static, type TProperties } from '../../lib/schema/index.ts'
import { notifySchema, type Notify } from '../../core/notify.ts'
import { givenRunningProperties, runningProperties } from './running.ts'
import { expectationProperties, givenExpectationProperties } from './expectation.ts'
import type { ExecutionRecord } from '../executions/types.ts'
import type { TriggerInstance, TriggerInstanceStatus } from '../triggers/types.ts'

const MAX_CRITERIA = 500

/** Properties of a record in a list: `include_attributes` can name parts of an attribute, so each part can be missing. */
export function partsOf(properties: TProperties): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [
      name,
      'required' in schema ? { ...schema, required: [] } : schema,
    ]),
  )
}

export const ruleTypes = ['standard', 'backstop'] as const

const RuleType = Type.Enum(ruleTypes)
export type RuleType = Static<typeof RuleType>

const CriterionDefinition = Type.Object({
  type: Type.String({ description: 'Name of an operator.' }),
  pattern: Type.Unknown(),
  condition: Type.Optional(Type.String({ description: 'Of `search`.' })),
})
export type CriterionDefinition = Static<typeof CriterionDefinition>

const RuleContext = Type.Object({
  user: Type.String({ description: 'User who wrote the rule last.' }),
  scopes: Type.Optional(
    Type.Unsafe<readonly Scope[]>({
      type: 'array',
      items: { type: 'object' },
      description: 'Scopes of the API key with which the rule was written.',
    }),
  ),
})
export type RuleContext = Static<typeof RuleContext>

const ruleProperties = {
  id: Type.String(),
  uid: Type.String({ description: '`rule:<pack>:<name>`' }),
  ref: Type.String({ description: '`<pack>.<name>`' }),
  name: Type.String(),
  pack: Type.String(),
  description: Type.String(),
  enabled: Type.Boolean(),
  type: Type.Object({ ref: RuleType, parameters: Type.FreeForm() }),
  trigger: Type.Object({
    type: Type.String({ description: 'Reference of the trigger type.' }),
    ref: Type.String({ description: 'Reference of the trigger.' }),
    parameters: Type.FreeForm(),
    description: Type.Optional(Type.String({ description: 'Only in `/v1/rules/views`: that of the trigger.' })),
  }),
  criteria: Type.MapOf(CriterionDefinition),
  action: Type.Object({
    ref: Type.String(),
    parameters: Type.FreeForm({ description: 'Secret values are masked.' }),
    description: Type.Optional(Type.String()),
    ...runningProperties,
  }),
  ...expectationProperties,
  ...keepProperties,
  context: RuleContext,
  tags: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
  notify: Type.Optional(
    Type.Unsafe<Notify>({ ...notifySchema, description: 'Destinations that hear how its executions end.' }),
  ),
  metadata_file: Type.Optional(Type.String({ description: 'Set if the rule comes from a pack.' })),
}

export const ruleAttributes = Object.keys(ruleProperties)

const definitionExample = {
  name: 'deploy',
  pack: 'examples',
  description: 'Deploys each build of the main branch.',
  enabled: true,
  trigger: { type: 'examples.build.finished' },
  criteria: { 'trigger.branch': { type: 'eq', pattern: 'main' } },
  action: { ref: 'core.local', parameters: { cmd: 'echo "$BRANCH"', env: { BRANCH: '{{ trigger.branch }}' } } },
}

const ruleExample = {
  id: '67a1f0c2e4b0a1d2c3e4f50b',
  uid: 'rule:examples:deploy',
  ref: 'examples.deploy',
  ...definitionExample,
  type: { ref: 'standard' as const, parameters: {} },
  trigger: { type: 'examples.build.finished', ref: 'examples.build.finished', parameters: {} },
  context: { user: 'admin' },
  tags: [],
}

export const RuleRecord = record('Rule', Type.Object(ruleProperties), { example: ruleExample })
export type RuleRecord = Static<typeof RuleRecord>

/** A rule inside the server: its row with JSON parsed, unmasked. The parameters of its trigger are with the trigger. */
export interface Rule extends Omit<RuleRecord, 'trigger'> {
  revision: number
  trigger: { id: string; ref: string; type: string }
  /** Users whose secret action parameters it has; absent: only those of the user who wrote it last. */
  secret_owners?: string[]
}

const givenParameters = (about: string) =>
  Type.Optional(
    Type.Unsafe<Record<string, unknown> | null>({ type: ['object', 'null'], description: `Default: none. ${about}` }),
  )

const givenDescription = Type.Optional(Type.Unsafe<string | null>(descriptionSchema))

const definitionProperties = {
  name: Type.Unsafe<string>(nameSchema),
  pack: Type.Optional(
    Type.Unsafe<string | null>({
      ...packSchema,
      type: ['string', 'null'],
      description: `Default: \`${defaultPack}\` for a new rule, else the pack of the rule. The pack need not exist.`,
    }),
  ),
  description: givenDescription,
  enabled: Type.Optional(Type.Unsafe<boolean | null>({ type: ['boolean', 'null'], description: 'Default: false.' })),
  type: Type.Optional(
    Type.Nullable(
      Type.Object(
        { ref: RuleType, parameters: givenParameters('Rule types have none.') },
        {
          additionalProperties: false,
          description: '`standard`, the default; `backstop`: fires only when no standard rule matches.',
        },
      ),
    ),
  ),
  trigger: Type.Object(
    {
      type: Type.String({ description: 'Reference of the trigger type.' }),
      parameters: givenParameters('They fit `parameters_schema` of the type.'),
      description: Type.Optional(
        Type.Unsafe<string | null>({ ...descriptionSchema, description: 'Ignored: a trigger has its own.' }),
      ),
      ref: Type.Optional(
        Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Ignored: answers contain it.' }),
      ),
    },
    { additionalProperties: true, description: 'Other properties are ignored.' },
  ),
  criteria: Type.Optional(
    Type.Unsafe<Record<string, unknown> | null>({
      type: ['object', 'null'],
      maxProperties: MAX_CRITERIA,
      description: 'Path into the payload → `{type, pattern, condition?}`; all must hold. Default: none.',
    }),
  ),
  action: Type.Object(
    {
      ref: Type.String({
        minLength: 1,
        maxLength: 2 * MAX_NAME_CHARS,
        description: 'Reference of the action. It need not exist yet.',
      }),
      parameters: givenParameters('Templates over `trigger.*`, `svckv.*` and `action_context.*`.'),
      description: givenDescription,
      ...givenRunningProperties,
    },
    { additionalProperties: false },
  ),
  ...givenExpectationProperties,
  ...givenKeepProperties,
  tags: Type.Optional(Type.Unsafe<{ name: string; value: string }[] | null>(tagsSchema)),
  notify: Type.Optional(
    Type.Unsafe<Notify | null>({
      ...notifySchema,
      type: [...notifySchema.type, 'null'],
      description:
        'Destinations that hear how its executions end: a name, or a list of names and `{use, on, to, message}`.',
    }),
  ),
}

const setByServer = Type.Optional(Type.Unknown({ description: 'Ignored: the server sets it.' }))

const setProperties = {
  id: setByServer,
  uid: setByServer,
  ref: setByServer,
  context: setByServer,
  metadata_file: setByServer,
}

/** A rule as its author writes it, in the file of a pack, or as the API has given it. Null is the default too. */
export const RuleDefinition = Type.Object(
  { ...definitionProperties, ...setProperties },
  { additionalProperties: false },
)
export type RuleDefinition = Static<typeof RuleDefinition>

/** Body of POST and PUT. A client can send back the record that it has read. */
export const RuleRequest = record(
  'RuleRequest',
  Type.Object(
    {
      ...definitionProperties,
      ...setProperties,
    },
    { additionalProperties: false },
  ),
  { example: definitionExample },
)
export type RuleRequest = Static<typeof RuleRequest>

const enforcementProperties = {
  id: Type.String(),
  trigger_instance_id: Type.String(),
  execution_id: Type.Optional(Type.String({ description: 'Absent if the enforcement failed or was skipped.' })),
  failure_reason: Type.Optional(Type.String()),
  skip_reason: Type.Optional(Type.String({ description: 'Only of `skipped`.' })),
  rule: Type.Object({ ref: Type.String(), uid: Type.String(), id: Type.String() }),
  enforced_at: Type.String({ format: 'date-time' }),
  status: Type.Enum(['succeeded', 'failed', 'skipped'], {
    description:
      '`succeeded`: svc created the execution, whatever its outcome; `skipped`: the rule says so for runs that would overlap.',
  }),
}

export const enforcementAttributes = Object.keys(enforcementProperties)

const enforcementExample = {
  id: '67a1f0c2e4b0a1d2c3e4f50c',
  trigger_instance_id: '67a1f0c2e4b0a1d2c3e4f50a',
  execution_id: '67a1f0c2e4b0a1d2c3e4f506',
  rule: { ref: ruleExample.ref, uid: ruleExample.uid, id: ruleExample.id },
  enforced_at: '2026-01-31T12:00:00.000000Z',
  status: 'succeeded' as const,
}

export const RuleEnforcement = record('RuleEnforcement', Type.Object(enforcementProperties), {
  example: enforcementExample,
})
export type RuleEnforcement = Static<typeof RuleEnforcement>

/** Body of `POST /ruleenforcements/import`. */
export const RuleEnforcementImport = record(
  'RuleEnforcementImport',
  Type.Object(
    {
      rule_enforcements: Type.Array(
        Type.Object({
          id: Type.String({ pattern: '^[0-9a-f]{24}$', description: 'It stays.' }),
          trigger_instance_id: Type.String(),
          execution_id: Type.Optional(Type.String({ description: 'Absent: the enforcement failed.' })),
          failure_reason: Type.Optional(Type.String({ maxLength: 65_536 })),
          rule: Type.Object({
            ref: Type.String({ minLength: 1 }),
            uid: Type.Optional(Type.String()),
            id: Type.Optional(Type.String()),
          }),
          enforced_at: Type.String({ description: 'ISO 8601.' }),
        }),
        { maxItems: 100 },
      ),
      dry_run: Type.Optional(Type.Boolean()),
    },
    { additionalProperties: false },
  ),
  {
    example: {
      rule_enforcements: [
        {
          id: enforcementExample.id,
          trigger_instance_id: enforcementExample.trigger_instance_id,
          execution_id: enforcementExample.execution_id,
          rule: { ref: ruleExample.ref },
          enforced_at: enforcementExample.enforced_at,
        },
      ],
    },
  },
)
export type RuleEnforcementImport = Static<typeof RuleEnforcementImport>

const enforcementViewProperties = {
  ...enforcementProperties,
  trigger_instance: Type.Optional(
    Type.Unsafe<
      Pick<TriggerInstance, 'id' | 'trigger' | 'payload' | 'occurrence_time' | 'status'> & { payload_reduced?: string }
    >({
      type: 'object',
      description: 'Only for callers who can view it.',
    }),
  ),
  execution: Type.Optional(
    Type.Unsafe<
      Partial<Pick<ExecutionRecord, 'id' | 'runner' | 'parameters' | 'status'>> & {
        action: { ref?: unknown; parameters?: unknown }
      }
    >({
      type: 'object',
      description:
        'Parts of the execution, with reference and parameters of its action. Only for callers who can view it.',
    }),
  ),
}

export const enforcementViewAttributes = Object.keys(enforcementViewProperties)

/** An enforcement with its trigger instance and parts of its execution, as far as the caller can view them. */
export const RuleEnforcementView = record('RuleEnforcementView', Type.Object(enforcementViewProperties), {
  example: enforcementExample,
})
export type RuleEnforcementView = Static<typeof RuleEnforcementView>

const { rule: _rule, ...lastEnforcementProperties } = enforcementProperties

const LastEnforcement = Type.Object({
  ...lastEnforcementProperties,
  execution_status: Type.Optional(
    Type.Enum(executionStatuses, { description: 'Status of the execution. Only for callers who can view it.' }),
  ),
})
export type LastEnforcement = Static<typeof LastEnforcement>

export type { Expectation } from './expectation.ts'

export const missReasons = ['not_started', 'failed', 'still_running', 'skipped', 'server_down'] as const
export type MissReason = (typeof missReasons)[number]

const stateTime = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }))

/** How a rule does as a job. Absent: not known, or there is none. */
export const jobStateProperties = {
  next_timestamp: stateTime('When its timer fires next.'),
  fired_timestamp: stateTime('When its timer last fired.'),
  last_execution_id: Type.Optional(
    Type.String({ description: 'The execution that ended last, after its last attempt. It may be deleted.' }),
  ),
  last_status: Type.Optional(Type.Enum(executionStatuses, { description: 'Status of that execution.' })),
  last_end_timestamp: stateTime('When that execution ended.'),
  last_success_timestamp: stateTime('When an execution last succeeded.'),
  expected_timestamp: stateTime('By when the next success is expected, as `expect` says.'),
  late_since_timestamp: stateTime('When the success was due that has not come. Absent: the rule is not late.'),
  late_reason: Type.Optional(Type.Enum(missReasons, { description: 'Why it is late, as of when svc noticed.' })),
}
const JobState = Type.Object(jobStateProperties)
export type JobState = Static<typeof JobState>

/** Attributes of views that `include_attributes` has to name, because they cost more. */
const onRequestProperties = {
  last_enforcement: Type.Optional({
    ...Type.Nullable(LastEnforcement),
    description: 'The newest enforcement, if `include_attributes` names it; null when there is none.',
  }),
  job: Type.Optional({ ...JobState, description: 'How the rule does as a job, if `include_attributes` names it.' }),
  next_run: Type.Optional({
    ...Type.Nullable(Type.String()),
    description: 'When the timer of the rule fires next; null: never, it has none, or the rule is disabled.',
  }),
  previous_run: Type.Optional({
    ...Type.Nullable(Type.String()),
    description: 'When the timer of the rule fired last; null: never.',
  }),
  next_runs: Type.Optional(
    Type.Array(Type.String(), { description: '`next_run` and the times of the schedule that follow.' }),
  ),
}

export const onRequestAttributes = Object.keys(onRequestProperties)

/** A rule with the descriptions of its action and its trigger; that of a timer with the times of its runs. */
export const RuleView = record('RuleView', Type.Object({ ...ruleProperties, ...onRequestProperties }), {
  example: { ...ruleExample, next_run: null, previous_run: null, next_runs: [] },
})
export type RuleView = Static<typeof RuleView>

const partialRuleExample = { id: ruleExample.id, ref: ruleExample.ref, pack: ruleExample.pack, name: ruleExample.name }

/** The same records in lists: `include_attributes` and `exclude_attributes` decide which attributes they have. */
export const PartialRule = record(
  'PartialRule',
  Type.Unsafe<Partial<RuleRecord>>({ type: 'object', required: ['id', 'ref'], properties: partsOf(ruleProperties) }),
  { example: partialRuleExample },
)

export const PartialRuleView = record(
  'PartialRuleView',
  Type.Unsafe<Partial<RuleView>>({
    type: 'object',
    required: ['id', 'ref'],
    properties: partsOf({ ...ruleProperties, ...onRequestProperties }),
  }),
  { example: partialRuleExample },
)

export const PartialRuleEnforcement = record(
  'PartialRuleEnforcement',
  Type.Unsafe<Partial<RuleEnforcement>>({
    type: 'object',
    required: ['id'],
    properties: partsOf(enforcementProperties),
  }),
  { example: { id: enforcementExample.id, status: enforcementExample.status } },
)

export const PartialRuleEnforcementView = record(
  'PartialRuleEnforcementView',
  Type.Unsafe<Partial<RuleEnforcementView>>({
    type: 'object',
    required: ['id'],
    properties: partsOf(enforcementViewProperties),
  }),
  { example: { id: enforcementExample.id, status: enforcementExample.status } },
)

export const RuleTypeRecord = record(
  'RuleType',
  Type.Object({
    id: Type.String(),
    name: RuleType,
    description: Type.String(),
    enabled: Type.Boolean(),
    parameters: Type.FreeForm(),
  }),
  {
    example: {
      id: '000000000000000000000001',
      name: 'standard',
      description: 'Fires whenever its criteria match.',
      enabled: true,
      parameters: {},
    },
  },
)
export type RuleTypeRecord = Static<typeof RuleTypeRecord>

/** An operator of criteria. */
export const OperatorRecord = record(
  'CriteriaOperator',
  Type.Object({
    name: Type.String({ description: 'Value for `type` of a criterion.' }),
    aliases: Type.Array(Type.String(), { description: 'Other names of the operator.' }),
    phrase: Type.String({ description: 'Words between value and pattern in a sentence: `is not`.' }),
    description: Type.String({ description: 'Help for authors; can be empty.' }),
    pattern: Type.Enum(['any', 'text', 'seconds', 'none', 'criteria'], {
      description: 'Kind of the pattern. `none`: the operator ignores it, but a criterion must have one.',
    }),
    conditions: Type.Optional(
      Type.Array(Type.Object({ name: Type.String(), phrase: Type.String() }), { description: 'Of `search`.' }),
    ),
  }),
  { example: { name: 'eq', aliases: ['equals'], phrase: 'is', description: '', pattern: 'any' } },
)
export type OperatorRecord = Static<typeof OperatorRecord>

const seenCriterion = {
  key: Type.String(),
  type: Type.String(),
  pattern: Type.Unknown(),
  condition: Type.Optional(Type.String()),
  value: Type.Unknown(),
}

/** A criterion with the value it was compared with. Long values are cut. */
const SeenCriterion = Type.Object(seenCriterion)
export type SeenCriterion = Static<typeof SeenCriterion>

const verdictProperties = {
  rule: Type.Object({
    id: Type.Optional(Type.String({ description: 'Absent for a rule that is not stored.' })),
    ref: Type.String(),
    uid: Type.String(),
    type: RuleType,
  }),
  verdict: Type.Enum(['disabled', 'matched', 'not_matched', 'failed', 'not_needed'], {
    description:
      '`not_matched`: see `criterion`; `failed`: a criterion could not be compared, see `reason`; ' +
      '`not_needed`: a backstop rule, and a standard rule matched.',
  }),
  criterion: Type.Optional({
    ...SeenCriterion,
    description: 'The first criterion that did not hold, with its value. Long values are cut.',
  }),
  reason: Type.Optional(Type.String({ description: 'Cause of `failed`; a note on other verdicts.' })),
  reduced: Type.Optional(
    Type.String({
      description: 'Why the rule sees only a part of the payload: the permission that its author does not have.',
    }),
  ),
}

const verdictExample = {
  rule: { id: ruleExample.id, ref: ruleExample.ref, uid: ruleExample.uid, type: 'standard' as const },
  verdict: 'not_matched' as const,
  criterion: { key: 'trigger.branch', type: 'eq', pattern: 'main', value: 'feature' },
}

const payloadReduced = Type.Optional(
  Type.String({
    description: 'Why values of the payload are masked: the permission that the caller does not have.',
  }),
)

/** Result of one rule for one trigger instance. */
export const RuleVerdict = record('RuleVerdict', Type.Object(verdictProperties), { example: verdictExample })
export type RuleVerdict = Static<typeof RuleVerdict>

const ExplainedRule = record(
  'ExplainedRule',
  Type.Object({
    ...verdictProperties,
    running: Type.Optional(
      Type.Object(runningProperties, { description: 'What the rule says now about its runs, if it says something.' }),
    ),
    enforcement: Type.Optional(
      Type.Object({
        id: enforcementProperties.id,
        status: enforcementProperties.status,
        execution_id: enforcementProperties.execution_id,
        failure_reason: enforcementProperties.failure_reason,
        skip_reason: enforcementProperties.skip_reason,
      }),
    ),
  }),
  { example: verdictExample },
)

/** Why a trigger instance started executions, or none. */
export const Explanation = record(
  'Explanation',
  Type.Object({
    trigger_instance: Type.Object({
      id: Type.String(),
      trigger: Type.String(),
      status: Type.Unsafe<TriggerInstanceStatus>({ type: 'string' }),
      occurrence_time: Type.String(),
      trace_id: Type.String(),
    }),
    rules: Type.Array(ExplainedRule),
    hidden: Type.Integer({ description: 'Number of rules of the trigger that the caller cannot view.' }),
    message: Type.String({ description: 'The reason in one or two sentences.' }),
    repetitions: Type.Optional(
      Type.Object(
        { count: Type.Integer(), first_timestamp: Type.String(), last_timestamp: Type.String() },
        { description: 'Repetitions of the delivery that svc ignored.' },
      ),
    ),
    payload_reduced: payloadReduced,
  }),
  {
    example: {
      trigger_instance: {
        id: '67a1f0c2e4b0a1d2c3e4f50a',
        trigger: 'examples.build.finished',
        status: 'processed',
        occurrence_time: '2026-01-31T12:00:00.000000Z',
        trace_id: '67a1f0c2e4b0a1d2c3e4f507',
      },
      rules: [verdictExample],
      hidden: 0,
      message: 'The only enabled rule does not match: examples.deploy.',
    },
  },
)
export type Explanation = Static<typeof Explanation>

/** Body of a test of a rule. */
export const RuleTestRequest = record(
  'RuleTestRequest',
  Type.Object(
    {
      rule: Type.Optional(RuleRequest),
      rule_ref: Type.Optional(Type.String({ description: 'Reference or id of a stored rule, in place of `rule`.' })),
      trigger_instance: Type.Optional(
        Type.Object(
          {
            trigger: Type.String({ minLength: 1, description: 'Reference of the trigger or its type.' }),
            payload: Type.Optional(Type.Unknown({ description: 'Default: {}.' })),
            id: Type.Optional(Type.String()),
            occurrence_time: Type.Optional(Type.String()),
          },
          { description: 'From a file or an answer. Other properties are ignored.' },
        ),
      ),
      trigger_instance_id: Type.Optional(
        Type.String({ description: 'Id of a stored trigger instance, in place of `trigger_instance`.' }),
      ),
    },
    { additionalProperties: false },
  ),
  {
    example: {
      rule: definitionExample,
      trigger_instance: { trigger: 'examples.build.finished', payload: { branch: 'feature' } },
    },
  },
)
export type RuleTestRequest = Static<typeof RuleTestRequest>

export const RuleTestResult = record(
  'RuleTestResult',
  Type.Object({
    matches: Type.Boolean(),
    verdict: RuleVerdict,
    criteria: Type.Array(
      Type.Object({ ...seenCriterion, holds: Type.Boolean(), reason: Type.Optional(Type.String()) }),
      { description: 'Each criterion of the rule, in its order, with its value. Long values are cut.' },
    ),
    parameters: Type.Optional(
      Type.FreeForm({ description: 'Parameters that the action would get. Secret values are masked.' }),
    ),
    problem: Type.Optional(
      Type.String({ description: 'Error of the action, or why rule and trigger instance do not fit together.' }),
    ),
    problem_path: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Where in the rule the problem is, if it is in a criterion: `["criteria", "trigger.body.kind"]`.',
      }),
    ),
    payload_reduced: payloadReduced,
  }),
  {
    example: {
      matches: false,
      verdict: verdictExample,
      criteria: [{ ...verdictExample.criterion, holds: false }],
    },
  },
)
export type RuleTestResult = Static<typeof RuleTestResult>
