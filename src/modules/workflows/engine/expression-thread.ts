/** Evaluates one expression that takes long, within the bounds of an expression. */
import { answerQuestions } from '../../../core/thread.ts'
import { readJson, writeJson } from '../../../lib/json/index.ts'
import { Budget, defaultLimits } from '../../../lib/template/index.ts'
import {
  evaluate,
  ExpressionError,
  ExpressionExhausted,
  type ExpressionErrorClass,
  type Scope,
  type TaskRecord,
} from '../expressions/index.ts'
import type { Fact } from './facts.ts'

/** JSON texts: numbers of their own kind do not cross threads otherwise. */
export interface ExpressionQuestion {
  value: string
  variables: string
  item: string | undefined
  task: { name: string; route: number; status: string } | undefined
  /** `[fact, value][]`, those asked for so far. */
  facts: string
}

export type ExpressionAnswer =
  { value: string } | { missing: Fact } | { error: { className: ExpressionErrorClass; message: string } }

/** @param miss called with a fact that is not among those that came with the question; the evaluation is worth nothing then */
function scopeOf({ variables: text, item, task, facts }: ExpressionQuestion, miss: (fact: Fact) => void): Scope {
  const variables = readJson(text) as Readonly<Record<string, unknown>> // as sent
  const known = new Map((readJson(facts) as [Fact, unknown][]).map(([fact, value]) => [writeJson(fact), value]))
  const ask = (fact: Fact): unknown => {
    const key = writeJson(fact)
    if (known.has(key)) return known.get(key)
    miss(fact)
    throw new Error('the server is asked')
  }
  return {
    variable: (name) => (Object.hasOwn(variables, name) ? variables[name] : undefined),
    variables: () => variables,
    task: task === undefined ? undefined : { ...task, result: () => ask({ kind: 'result' }) },
    item: item === undefined ? undefined : readJson(item),
    taskStatus: (name, route) => (ask({ kind: 'status', name, route }) ?? undefined) as string | undefined,
    taskRecord: (name, route) => (ask({ kind: 'record', name, route }) ?? undefined) as TaskRecord | undefined,
    readKey(key, decrypt) {
      const answer = ask({ kind: 'key', key, decrypt }) as { value: unknown } | { problem: string }
      if ('problem' in answer) throw new Error(answer.problem)
      return answer.value ?? undefined
    },
  }
}

answerQuestions<ExpressionQuestion, ExpressionAnswer>((question) => {
  let missing: Fact | undefined
  const scope = scopeOf(question, (fact) => (missing ??= fact))
  try {
    const budget = new Budget(defaultLimits, 'the expression')
    const value = evaluate(readJson(question.value), scope, { budget })
    return missing === undefined ? { value: writeJson(value ?? null) } : { missing }
  } catch (error) {
    if (missing !== undefined) return { missing }
    if (error instanceof ExpressionError) return { error: { className: error.className, message: error.message } }
    if (!(error instanceof ExpressionExhausted)) throw error
    const { text, message } = error
    return { error: { className: text.slice(0, text.indexOf(':')) as ExpressionErrorClass, message } }
  }
})
