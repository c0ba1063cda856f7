/** How rules and actions name whom they notify: `notify`, which the module `notifications` reads. */
import type { JsonSchema } from '../lib/schema/index.ts'
import { isObject } from '../lib/schema/index.ts'

export const conditions = ['failed', 'timeout', 'recovered', 'succeeded', 'missed'] as const
export type Condition = (typeof conditions)[number]

export const conditionNames = [...conditions, 'all'] as const
export type ConditionName = (typeof conditionNames)[number]

/** Whom a rule or an action notifies, as its author writes it. */
export type Notify = string | readonly (string | NotifyUse)[]

export interface NotifyUse {
  /** Name of a destination. */
  use: string
  on?: ConditionName | readonly ConditionName[]
  /** Recipients, where the channel has them. */
  to?: readonly string[]
  message?: string
}

const MAX_USES = 20

export const destinationName: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]*$',
}

export const onSchema: JsonSchema = {
  type: ['string', 'array'],
  pattern: `^(${conditionNames.join('|')})$`,
  minItems: 1,
  maxItems: conditionNames.length,
  items: { enum: [...conditionNames] },
  description: `One or several of ${conditionNames.join(', ')}.`,
}

const useProperties: Readonly<Record<string, JsonSchema>> = {
  use: { ...destinationName, description: 'Name of a destination.' },
  on: onSchema,
  true: { ...onSchema, description: 'The same as `on`, which YAML reads as true.' },
  to: {
    type: 'array',
    minItems: 1,
    maxItems: 50,
    items: { type: 'string', minLength: 1, maxLength: 320 },
    description: 'Recipients, where the channel has them.',
  },
  message: { type: 'string', minLength: 1, maxLength: 4096, description: 'Template over the facts of the message.' },
}

/** A name, or a list of names and uses. Keywords count for the types that they are about. */
export const notifySchema = {
  ...destinationName,
  type: ['string', 'array'],
  maxItems: MAX_USES,
  items: {
    ...destinationName,
    type: ['string', 'object'],
    required: ['use'],
    additionalProperties: false,
    properties: useProperties,
  },
} satisfies JsonSchema

/** Undoes what YAML 1.1 does to the key `on`: it reads it as true. */
export function withOn<T>(given: T): T {
  if (!isObject(given) || !('true' in given) || 'on' in given) return given
  return Object.fromEntries(Object.entries(given).map(([key, value]) => [key === 'true' ? 'on' : key, value])) as T
}

/** A valid `notify` as records show it. */
export function readNotify<T>(given: T): T {
  return Array.isArray(given) ? (given.map((item: unknown) => withOn(item)) as T) : given // items keep their form
}

/** @param notify what has passed its schema, or the incumbent's form of an action, which names no destination */
export function usesIn(notify: unknown): NotifyUse[] {
  if (typeof notify === 'string') return [{ use: notify }]
  if (!Array.isArray(notify)) return []
  return notify.map((item: string | NotifyUse) => (typeof item === 'string' ? { use: item } : withOn(item)))
}

/** The conditions that a name, or several, stand for. */
export function conditionsOf(on: ConditionName | readonly ConditionName[]): ReadonlySet<Condition> {
  const names = typeof on === 'string' ? [on] : on
  return new Set(names.flatMap((name): readonly Condition[] => (name === 'all' ? conditions : [name])))
}
