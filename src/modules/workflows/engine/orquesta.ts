/** Programs of the runner `orquesta`. */
import type { AppError } from '../../../core/errors.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { Execution } from '../../executions/types.ts'
import { conduct, createMemory, review, type StartCommand } from '../conductor/index.ts'
import { readDefinition } from '../definition/model.ts'
import { loadDefinition } from '../definition/read.ts'
import { taskExecutionId } from './task-execution-id.ts'
import { evaluateAgain, evaluateBriefly } from './evaluate.ts'
import { runnerParameter, type Program } from './program.ts'
import { chatOf } from './run.ts'

/** @param text of a definition that can be read */
export function orquestaProgram(text: string): Program {
  const document = loadDefinition(text)
  const graph = readDefinition('problem' in document ? undefined : document.value)
  return {
    graph,
    review: (state, part, { outside }) => review(graph, state, part, { evaluate: evaluateAgain, outside }),
    createConduct() {
      const memory = createMemory()
      return (state, event, { outside, limits, evaluated, refusalOf }) =>
        conduct(graph, state, event, {
          evaluate: evaluateBriefly(evaluated),
          memory,
          limits,
          outside: {
            ...outside,
            whyRefused(command) {
              const refusal = refusalOf(command)
              return refusal === undefined ? undefined : spell(refusal, command)
            },
          },
        })
    },
    requestOf(workflow, run, { instance, attempt, item, task, route }) {
      const { notify } = workflow.liveaction
      const names = runnerParameter(workflow, 'notify')
      const isNotified = Array.isArray(names) && names.includes(task) && isObject(notify)
      return {
        context: {
          parent: parentOf(workflow),
          orquesta: {
            workflow_execution_id: run,
            task_execution_id: taskExecutionId(run, instance, attempt),
            task_name: task,
            task_id: task,
            task_route: route,
            ...(item === undefined ? {} : { item_id: item }),
            ...(attempt === 0 ? {} : { attempt: attempt + 1 }),
          },
        },
        notify: isNotified ? notify : undefined,
      }
    },
    resultOf(_, state) {
      const { status, output } = state.workflow
      if (status !== 'failed') return { output }
      const errors = [...state.errors.values()].sort((a, b) => a.id - b.id)
      return { output, errors: errors.map(({ entry }) => entry) }
    },
  }
}

function parentOf({ id, user, action, context }: Execution): Record<string, unknown> {
  return { execution_id: id, user, pack: action.pack, ...chatOf(context) }
}

/** The class that users know a refusal by. */
const classes: Readonly<Record<string, string>> = {
  ACTION_UNKNOWN: 'InvalidActionReferencedException',
  PARAMETERS_INVALID: 'ValueValidationException',
}

function spell({ code, message }: AppError, { action }: StartCommand): string {
  return `${classes[code] ?? 'ValueError'}: ${code === 'ACTION_UNKNOWN' ? `Unable to find action "${action}".` : message}`
}
