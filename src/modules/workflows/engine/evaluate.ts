/**
 * Evaluates the expressions of one call of the conductor. Most take microseconds. One that takes longer breaks the call off:
 * a thread evaluates it, and the call, which has changed nothing, is repeated with its value.
 */
import { locateCode } from '../../../core/bundle.ts'
import { createThread } from '../../../core/thread.ts'
import { writeJsonInTurns } from '../../../http/index.ts'
import { readJson } from '../../../lib/json/index.ts'
import { Budget, BudgetExhausted, defaultLimits, type Limits } from '../../../lib/template/index.ts'
import type { Evaluate } from '../conductor/index.ts'
import { evaluate, ExpressionError, ExpressionExhausted, type Scope } from '../expressions/index.ts'
import type { ExpressionAnswer, ExpressionQuestion } from './expression-thread.ts'
import { factOf, type Fact } from './facts.ts'

/** On the event loop: a few milliseconds at most. Bounds of single values are those of the thread, which has the last word. */
const briefLimits: Limits = {
  ...defaultLimits,
  maxSteps: 5_000,
  maxWork: 1024 * 1024,
  maxMilliseconds: 20,
}

/** The call breaks off: this expression needs the thread. */
export class NeedsThread extends BudgetExhausted {
  readonly value: unknown
  readonly scope: Scope
  /** Number of the evaluation in the call. */
  readonly place: number

  constructor(value: unknown, scope: Scope, place: number, message: string) {
    super(message)
    this.value = value
    this.scope = scope
    this.place = place
  }
}

export type Evaluated = { readonly value: unknown } | { readonly error: ExpressionError }

/** @param tooLong makes the error of an expression that takes longer */
function evaluateSoon(
  [value, scope, readings]: Parameters<Evaluate>,
  tooLong: (exhausted: ExpressionExhausted) => Error,
): unknown {
  try {
    return evaluate(value, scope, {
      budget: new Budget(briefLimits, 'the expression'),
      ...(readings === undefined ? {} : { readings }),
    })
  } catch (error) {
    throw error instanceof ExpressionExhausted ? tooLong(error) : error
  }
}

/** For whoever asks why: what takes long is not evaluated again. @throws ExpressionError */
export const evaluateAgain: Evaluate = (...given) =>
  evaluateSoon(given, ({ message }) => {
    const reason = `It takes long, so it is not evaluated again: ${message}`
    return new ExpressionError('ExpressionEvaluationException', reason)
  })

/** @param known what the thread has evaluated, by the number of the evaluation in the call */
export function evaluateBriefly(known: ReadonlyMap<number, Evaluated>): Evaluate {
  let next = 0
  return (...given) => {
    const place = next++
    const found = known.get(place)
    if (found === undefined) {
      const [value, scope] = given
      return evaluateSoon(given, ({ message }) => new NeedsThread(value, scope, place, message))
    }
    if ('error' in found) throw found.error
    return found.value
  }
}

export interface Patience {
  /** Evaluates in the thread. @throws SHUTTING_DOWN, and what the scope throws besides errors of expressions */
  evaluate(wanted: NeedsThread): Promise<Evaluated>
  stop(): Promise<void>
}

export function createPatience(): Patience {
  const thread = createThread<ExpressionQuestion, ExpressionAnswer>({
    name: 'the thread for expressions of workflows',
    file: locateCode('./expression-thread', import.meta.url),
  })
  return {
    async evaluate({ value, scope }) {
      const { task, item } = scope
      const facts: [Fact, unknown][] = []
      const [text, variables, ofItem] = [
        await writeJsonInTurns(value),
        await writeJsonInTurns(scope.variables()),
        item === undefined ? undefined : await writeJsonInTurns(item),
      ]
      for (;;) {
        const answer = await thread.ask({
          value: text,
          variables,
          item: ofItem,
          task: task === undefined ? undefined : { name: task.name, route: task.route, status: task.status },
          facts: await writeJsonInTurns(facts),
        })
        if ('value' in answer) return { value: readJson(answer.value) }
        if ('error' in answer) return { error: new ExpressionError(answer.error.className, answer.error.message) }
        facts.push([answer.missing, factOf(scope, answer.missing)])
      }
    },
    stop: () => thread.stop(),
  }
}
