/**
 * The runner types of workflows. Nothing here runs: the module `workflows` conducts their executions, which take no slot
 * (contract 08; parameters: contract 03, 3.6).
 */
import type { RunnerTypeDefinition } from './runner.ts'

export const orquestaName = 'orquesta'
export const actionChainName = 'action-chain'

export const workflowRunners: readonly RunnerTypeDefinition[] = [
  {
    name: orquestaName,
    description: 'Runs a workflow: tasks that fork, join, loop, repeat and wait for people.',
    enabled: true,
    runner_package: 'orquesta_runner',
    runner_module: 'orquesta_runner',
    output_key: 'output',
    runner_parameters: {
      notify: {
        type: 'array',
        description: 'Names of the tasks whose executions get the notifications of the workflow.',
        items: { type: 'string' },
        default: [],
      },
    },
  },
  {
    name: actionChainName,
    description: 'Runs a chain: one action after the other.',
    enabled: true,
    runner_package: 'action_chain_runner',
    runner_module: 'action_chain_runner',
    output_key: 'published',
    runner_parameters: {
      skip_notify: {
        type: 'array',
        description: 'Names of the tasks whose executions send no notifications.',
        items: { type: 'string' },
        default: [],
      },
      display_published: {
        type: 'boolean',
        description: 'Whether the result has the published values.',
        default: true,
      },
    },
  },
]

const names: ReadonlySet<string> = new Set(workflowRunners.map(({ name }) => name))

/** Whether executions of the runner are workflows. */
export const isWorkflowRunner = (name: string): boolean => names.has(name)
