/** What a rule expects of its runs (`expect`): its schema, and what the schema cannot say. */
import { durationSchema, formatDuration, readDuration } from '../../lib/calendar/index.ts'
import { Type, type SchemaProblem, type Static } from '../../lib/schema/index.ts'

const MIN_SECONDS = 1
const MAX_SECONDS = 366 * 86_400

const span = (about: string) =>
  Type.Unsafe<number | string>({
    ...durationSchema,
    description: `${about} Seconds, or text such as \`10m\` or \`26h\`.`,
  })

const within = span('Of a rule with a timer: the time after each firing within which its run must have succeeded.')
const every = span('The rule must succeed at least once in each such time.')

const Expectation = Type.Object(
  { within: Type.Optional(within), every: Type.Optional(every) },
  { description: 'When the rule must succeed. If it does not, `core.svc.missed` fires once.' },
)
/** As the author has written it. */
export type Expectation = Static<typeof Expectation>

/** Of a record. */
export const expectationProperties = { expect: Type.Optional(Expectation) }

/** Of a definition; null: not given. */
export const givenExpectationProperties = {
  expect: Type.Optional(
    Type.Nullable(
      Type.Object(
        { within: Type.Optional(orNull(within)), every: Type.Optional(orNull(every)) },
        { additionalProperties: false, description: 'When the rule must succeed: `within`, `every`, or both.' },
      ),
    ),
  ),
}

function orNull<S extends typeof within>(schema: S) {
  return Type.Unsafe<number | string | null>({ ...schema, type: [...durationSchema.type, 'null'] })
}

type Given = { expect?: { within?: number | string | null; every?: number | string | null } | null }

/** The expectation alone, without what is not given. */
export function expectationOf({ expect }: Given): { expect?: Expectation } {
  if (expect === undefined || expect === null) return {}
  const { within: first, every: second } = expect
  return {
    expect: {
      ...(first === undefined || first === null ? {} : { within: first }),
      ...(second === undefined || second === null ? {} : { every: second }),
    },
  }
}

/**
 * What the schema cannot say.
 *
 * @param isScheduled the trigger is a timer
 * @returns path from the root of the rule
 */
export function problemOfExpectation(expect: Expectation | undefined, isScheduled: boolean): SchemaProblem | undefined {
  if (expect === undefined) return undefined
  for (const name of ['within', 'every'] as const) {
    const given = expect[name]
    const text = given === undefined ? undefined : problemOfSpan(given)
    if (text !== undefined) return { path: ['expect', name], message: `expect.${name}: ${text}` }
  }
  if (expect.within === undefined && expect.every === undefined) {
    return { path: ['expect'], message: 'expect: it needs "within" or "every", such as "every: 24h".' }
  }
  if (expect.within === undefined || isScheduled) return undefined
  return {
    path: ['expect', 'within'],
    message:
      'expect.within: it counts from the times of a timer, and the trigger of this rule has none. Use "every", such as "every: 24h".',
  }
}

function problemOfSpan(given: number | string): string | undefined {
  const read = readDuration(given)
  if ('problem' in read) return `${read.problem}.`
  if (read.seconds < MIN_SECONDS) return `it must be at least ${formatDuration(MIN_SECONDS)}.`
  return read.seconds > MAX_SECONDS ? `it must be at most ${formatDuration(MAX_SECONDS)}.` : undefined
}
