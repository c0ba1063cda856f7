/** Programs of the runner `action-chain`. */
import {
  Budget,
  BudgetExhausted,
  defaultLimits,
  TemplateError,
  type TemplateScope,
} from '../../../lib/template/index.ts'
import { actionChainName } from '../../../runners/index.ts'
import {
  conductChain,
  createChainMemory,
  renderValue,
  requestOf,
  resultOf,
  reviewChain,
  type Chain,
  type ChainRefusal,
  type RenderChainValue,
} from '../chain/index.ts'
import type { Execution } from '../../executions/types.ts'
import type { AppError } from '../../../core/errors.ts'
import { runnerParameter, type Program } from './program.ts'

/** On the event loop, for all templates of a call together. */
const limits = { ...defaultLimits, maxSteps: 50_000, maxWork: 8 * 1024 * 1024, maxMilliseconds: 200 }

export function chainProgram(chain: Chain): Program {
  return {
    graph: chain.graph,
    review: (state, part, { outside, workflow, templates }) =>
      reviewChain(chain, state, part, {
        render,
        outside: {
          resultOf: (instance, item) => outside.resultOf(instance, item),
          hasAction: () => true,
          templates: () => withParent(templates(), workflow),
        },
      }),
    createConduct() {
      const memory = createChainMemory()
      return (state, event, { outside, limits: most, refusalOf, hasAction, templates, workflow }) =>
        conductChain(chain, state, event, {
          render,
          memory,
          limits: most,
          outside: {
            resultOf: (instance, item) => outside.resultOf(instance, item),
            hasAction,
            templates: () => withParent(templates(), workflow),
            whyRefused(command) {
              const refusal = refusalOf(command)
              return refusal === undefined ? undefined : toRefusal(refusal)
            },
          },
        })
    },
    requestOf(workflow, _, { task, instance }) {
      const { notify } = workflow.liveaction
      const skipped = runnerParameter(workflow, 'skip_notify')
      const index = chain.graph.taskIndexes.get(task)
      if (index === undefined) throw new Error(`the chain has no node for instance ${instance}`)
      const request = requestOf(chain, { task: index }, notify, Array.isArray(skipped) ? (skipped as string[]) : [])
      return {
        context: { parent: { ...workflow.context, execution_id: workflow.id }, chain: request.chain },
        notify: request.notify,
      }
    },
    resultOf(workflow, state, runOf) {
      const isShown = runnerParameter(workflow, 'display_published') !== false
      return resultOf(
        chain,
        state,
        (instance) => {
          const { start, end, execution, result } = runOf(instance)
          return {
            created_at: start,
            updated_at: end,
            child:
              execution === undefined
                ? undefined
                : {
                    execution_id: execution.id,
                    liveaction_id: execution.liveaction_id,
                    workflow: execution.runner.name === actionChainName ? execution.action_ref : null,
                    state: execution.status,
                    result,
                  },
          }
        },
        isShown,
      )
    },
  }
}

/** @throws TemplateError also for a template that takes too much */
const render: RenderChainValue = (value, scope) => {
  try {
    return renderValue(value, scope, new Budget(limits))
  } catch (error) {
    throw error instanceof BudgetExhausted ? new TemplateError('LIMIT', error.message) : error
  }
}

/** Templates see the context that the executions of the nodes have. */
const withParent = (scope: TemplateScope, { id, context }: Execution): TemplateScope => ({
  ...scope,
  variables: { ...scope.variables, action_context: { parent: { ...context, execution_id: id } } },
})

const toRefusal = ({ code, message, details }: AppError): ChainRefusal => ({
  text: message,
  isConversion: code === 'PARAMETERS_INVALID' && details?.['parameter'] !== undefined,
})
