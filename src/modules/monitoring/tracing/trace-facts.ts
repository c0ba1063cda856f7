/**
 * Creates spans from facts: one per evaluated trigger instance, per rule enforcement and per execution. Span ids derive
 * from record ids, so that a child can name its parent without having seen it.
 */
import { hash } from 'node:crypto'
import type { Bus } from '../../../bus/index.ts'
import { microsOf, nowMicros } from '../../../core/time.ts'
import type { Execution, ExecutionStatus } from '../../executions/types.ts'
import type { QueuedInstance } from '../../triggers/types.ts'
import type { Exporter } from './exporter.ts'

/** Unfinished trigger instances with spans. Further ones get no spans. */
const MAX_OPEN = 10_000

const outcomes: Partial<Record<ExecutionStatus, 'ok' | 'error'>> = {
  succeeded: 'ok',
  failed: 'error',
  timeout: 'error',
  abandoned: 'error',
}
const ends: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>([
  'succeeded',
  'failed',
  'timeout',
  'canceled',
  'abandoned',
])

/**
 * @param causeOf the execution that dispatched a trigger instance
 * @returns stops the subscription
 */
export function traceFacts(
  bus: Bus,
  exporter: Pick<Exporter, 'add'>,
  causeOf: (instanceId: string) => string | undefined,
): () => void {
  const open = new Map<string, { instance: QueuedInstance; start: number }>()
  const stops = [
    bus.subscribe('trigger_instance.created', (instance) => {
      if (open.size < MAX_OPEN) open.set(instance.id, { instance, start: nowMicros() })
    }),
    bus.subscribe(
      'rule.enforced',
      ({ trigger_instance_id: instanceId, execution_id, rule, status, failure_reason }) => {
        const begun = open.get(instanceId)
        if (begun === undefined) return
        // The clock can have been set back.
        const at = Math.max(begun.start, nowMicros())
        exporter.add({
          traceId: traceIdOf(begun.instance.trace_id),
          spanId: enforcementSpan(instanceId, rule.id),
          parentSpanId: spanIdOf(instanceId),
          name: `rule ${rule.ref}`,
          start: begun.start,
          end: at,
          attributes: {
            'svc.rule.ref': rule.ref,
            'svc.execution.id': execution_id,
            'svc.trigger_instance.id': instanceId,
          },
          status: status === 'failed' ? 'error' : 'ok',
          statusMessage: failure_reason,
        })
      },
    ),
    bus.subscribe('trigger_instance.processed', ({ id, execution_ids: executionIds }) => {
      const begun = open.get(id)
      if (begun === undefined) return
      open.delete(id)
      const { instance, start } = begun
      const cause = causeOf(id)
      exporter.add({
        traceId: traceIdOf(instance.trace_id),
        spanId: spanIdOf(id),
        parentSpanId: cause === undefined ? undefined : spanIdOf(cause),
        name: `trigger ${instance.trigger_type}`,
        start,
        end: Math.max(start, nowMicros()),
        attributes: {
          'svc.trigger_instance.id': id,
          'svc.trigger.ref': instance.trigger,
          'svc.trace.id': instance.trace_id,
          'svc.executions': executionIds.length,
        },
        status: 'ok',
      })
    }),
    bus.subscribe('execution.updated', ({ execution }) => {
      if (!ends.has(execution.status)) return
      const { id, action_ref: action, status, start_timestamp: started, end_timestamp: ended } = execution
      exporter.add({
        traceId: traceIdOf(execution.trace_id),
        spanId: spanIdOf(id),
        parentSpanId: parentOf(execution),
        name: action,
        start: microsOf(started),
        end: ended === null ? nowMicros() : microsOf(ended),
        attributes: {
          'svc.execution.id': id,
          'svc.action.ref': action,
          'svc.runner': execution.runner.name,
          'svc.execution.status': status,
          'svc.user': execution.user,
          'svc.rule.ref': execution.origin?.rule.ref,
          'svc.trace.id': execution.trace_id,
        },
        events: execution.log.map((entry) => ({ name: entry.status, at: microsOf(entry.timestamp) })),
        status: outcomes[status],
        statusMessage: outcomes[status] === 'error' ? status : undefined,
      })
    }),
  ]
  return () => stops.forEach((stop) => stop())
}

function parentOf({ parent, trigger_instance: instanceId, origin }: Execution): string | undefined {
  if (parent !== null) return spanIdOf(parent)
  return instanceId === null || origin === null ? undefined : enforcementSpan(instanceId, origin.rule.id)
}

/** svc ids have 24 hexadecimal digits, OpenTelemetry ids 32. */
const traceIdOf = (id: string): string => id.padStart(32, '0')

const spanIdOf = (id: string): string => hash('sha256', id).slice(0, 16)

const enforcementSpan = (instanceId: string, ruleId: string): string => spanIdOf(`${instanceId} ${ruleId}`)
