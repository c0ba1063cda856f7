/** Executions as clients see them (contract 03, 3.2; 04, 4.2; 00, 0.15). */
import type { ParameterSecrets } from './secrets/parameters.ts'
import type { ResultSecrets } from './secrets/results.ts'
import type { Execution, ExecutionRecord, Liveaction, LiveactionEvent, LiveactionRecord } from './types.ts'
import { executionAddress } from '../../core/web-address.ts'
import { attemptOf } from './attempts.ts'
import { JsonNumber } from '../../lib/json/index.ts'
import { isWorkflowRunner } from '../../runners/index.ts'

export interface Records {
  /** @param children ids, oldest first @param unmasked with the secrets, for administrators who ask */
  of(execution: Execution, options: { children: string[]; unmasked: boolean }): ExecutionRecord
  /** As streams send it. */
  masked(execution: Execution): ExecutionRecord
  /** The live action record of the event stream. */
  maskedLiveaction(execution: Execution): LiveactionEvent
}

export function createRecords(deps: {
  parameters: Pick<ParameterSecrets, 'decryptOrMask' | 'masked'>
  results: Pick<ResultSecrets, 'decrypt'>
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
  /** Address of the web client, without a trailing slash. */
  webUrl(): string
}): Records {
  const { parameters, results, maskSecrets } = deps
  const withSecrets = {
    parametersOf: (execution: Execution) => parameters.decryptOrMask(execution).parameters,
    resultOf: (execution: Execution) => results.decrypt(execution),
  }
  const withMasks = {
    parametersOf: (execution: Execution) => parameters.masked(execution),
    resultOf: ({ result }: Execution) => result,
  }

  const optionsOf = (unmasked: boolean): RecordOptions => ({
    ...(unmasked || !maskSecrets ? withSecrets : withMasks),
    webUrl: deps.webUrl(),
  })

  return {
    of: (execution, { children, unmasked }) => executionRecord(execution, optionsOf(unmasked), children),
    masked: (execution) => executionRecord(execution, optionsOf(false)),
    maskedLiveaction: (execution) => liveactionRecord(execution, optionsOf(false)),
  }
}

interface RecordOptions {
  /** With or without masks, as the reader may see them. */
  readonly parametersOf: (execution: Execution) => Record<string, unknown>
  readonly resultOf: (execution: Execution) => unknown
  /** Address of the web client, without a trailing slash. */
  webUrl: string
}

/** Leaves out every top-level attribute that is empty. */
function withoutEmpty(record: {
  [name in Exclude<keyof ExecutionRecord, 'parameters_size'>]: unknown
}): ExecutionRecord {
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(record)) {
    if (!isEmpty(value)) kept[name] = value
  }
  // What is required of a record is never empty.
  return kept as ExecutionRecord
}

function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object') return value === undefined || value === '' || value === 0 || value === false
  if (value === null) return true
  if (value instanceof JsonNumber) return Number(value.text) === 0
  for (const _ in value) return false
  return true
}

function executionRecord(execution: Execution, options: RecordOptions, children: string[] = []): ExecutionRecord {
  const parameters = options.parametersOf(execution)
  return withoutEmpty({
    id: execution.id,
    status: execution.status,
    start_timestamp: execution.start_timestamp,
    end_timestamp: execution.end_timestamp,
    elapsed_seconds: execution.elapsed_seconds,
    action: execution.action,
    runner: execution.runner,
    liveaction: liveactionPart(execution, parameters, execution.liveaction),
    parameters,
    result: options.resultOf(execution),
    result_size: execution.result_size,
    context: execution.context,
    log: execution.log,
    web_url: executionAddress(options.webUrl, execution.id),
    parent: execution.parent,
    children,
    delay: execution.delay,
    attempt: execution.liveaction.retry_of === undefined ? undefined : attemptOf(execution),
    retry_of: execution.liveaction.retry_of,
    rule: execution.origin?.rule ?? namedReference(execution.rule),
    trigger: execution.origin?.trigger ?? namedReference(execution.trigger),
    trigger_type: execution.origin?.trigger_type ?? namedReference(execution.trigger_type),
    trigger_instance: triggerInstanceOf(execution),
    ...workflowOf(execution),
  })
}

/** Keeps empty attributes, unlike the execution around it. */
function liveactionPart(
  execution: Execution,
  parameters: Record<string, unknown>,
  { callback, runner_info, notify }: Liveaction,
): LiveactionRecord {
  return {
    id: execution.liveaction_id,
    action: execution.action_ref,
    action_is_workflow: isWorkflowRunner(execution.runner.name),
    parameters,
    callback,
    runner_info,
    ...(notify === undefined ? {} : { notify }),
  }
}

/** With what the context says about it; only the server writes that part of the context. */
export function triggerInstanceOf({
  trigger_instance: id,
  context,
}: Execution): ExecutionRecord['trigger_instance'] | null {
  if (id === null) return null
  const known = context['trigger_instance']
  return typeof known === 'object' ? { ...known, id } : { id }
}

/** The workflow and the task that started it; only the server writes that part of the context. */
function workflowOf({ context }: Execution): Record<'workflow_execution' | 'task_execution', unknown> {
  const { workflow_execution_id: workflow_execution, task_execution_id: task_execution } =
    (context['orquesta'] as Record<string, unknown> | undefined) ?? {}
  return { workflow_execution, task_execution }
}

function namedReference(name: string | null): { name: string } | null {
  return name === null ? null : { name }
}

function liveactionRecord(execution: Execution, options: RecordOptions): LiveactionEvent {
  return {
    ...liveactionPart(execution, options.parametersOf(execution), execution.liveaction),
    status: execution.status,
    result: options.resultOf(execution) ?? {},
    context: execution.context,
    start_timestamp: execution.start_timestamp,
    ...(execution.end_timestamp === null ? {} : { end_timestamp: execution.end_timestamp }),
    ...(execution.delay === null ? {} : { delay: execution.delay }),
  }
}
