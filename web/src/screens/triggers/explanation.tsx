import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { executionStates, type ExecutionState } from '../../api/execution-states.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import { laterOf } from '../../api/execution-summary.ts'
import { useLoaded } from '../../api/load.ts'
import type { Explanation } from '../../api/records.ts'
import { LongText } from '../../components/long-text.tsx'
import { VerdictBadge, VerdictReason } from '../../components/rules/verdict.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Elapsed } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'

type ExplainedRule = Explanation['rules'][number]

const RULES_AT_ONCE = 50
const noStates: ReadonlyMap<string, ExecutionState> = new Map()

/** What the server says first, then each rule with its reason, and what it has started. */
export function ExplanationView({ explanation }: { explanation: Explanation }): JSX.Element {
  const { message, rules, hidden, trigger_instance: instance, payload_reduced: reduced } = explanation
  const [shown, setShown] = useState(RULES_AT_ONCE)
  const states = useStates(rules)
  return (
    <>
      <p class="why-message" role="status">
        {message}
      </p>
      {reduced !== undefined && <p class="hint">{reduced}</p>}
      {rules.length > 0 && (
        <ul class="why-rules" aria-label="Rules of the trigger">
          {rules.slice(0, shown).map((rule) => (
            <Rule key={rule.rule.ref} explained={rule} instance={instance.id} states={states} />
          ))}
        </ul>
      )}
      {rules.length > shown && (
        <button type="button" onClick={() => setShown(shown + RULES_AT_ONCE * 4)}>
          {rules.length - shown} more
        </button>
      )}
      {hidden > 0 && (
        <p class="hint">
          {hidden === 1
            ? '1 more rule of the trigger is hidden from you.'
            : `${hidden} more rules of the trigger are hidden from you.`}
        </p>
      )}
    </>
  )
}

function Rule({
  explained,
  instance,
  states,
}: {
  explained: ExplainedRule
  /** Id of the trigger instance. */
  instance: string
  states: ReadonlyMap<string, ExecutionState>
}): JSX.Element {
  const { rule, verdict, reason, enforcement } = explained
  // Criteria that cannot be compared fail the enforcement, with the same words.
  const failure =
    reason !== undefined && enforcement?.failure_reason?.includes(reason) === true
      ? undefined
      : enforcement?.failure_reason
  return (
    <li data-verdict={enforcement?.status === 'failed' ? 'failed' : verdict}>
      <div class="why-rule">
        <a href={hrefOf(['rules', rule.ref])}>{rule.ref}</a>
        <VerdictBadge verdict={verdict} />
        {rule.type === 'backstop' && <span class="badge">backstop</span>}
        <a class="why-test" href={hrefOf(['rules', rule.ref], { instance })}>
          Test rule
        </a>
      </div>
      <VerdictReason verdict={explained} />
      {failure !== undefined && (
        <p class="problem">
          <LongText text={failure} />
        </p>
      )}
      {enforcement?.skip_reason !== undefined && (
        <p>
          <LongText text={enforcement.skip_reason} />
        </p>
      )}
      {enforcement?.execution_id !== undefined && (
        <Started execution={enforcement.execution_id} state={states.get(enforcement.execution_id)} />
      )}
    </li>
  )
}

function Started({ execution, state }: { execution: string; state: ExecutionState | undefined }): JSX.Element {
  return (
    <p>
      Started <a href={hrefOf(['history', execution])}>{state?.action.ref ?? 'an execution'}</a>{' '}
      {state !== undefined && (
        <>
          <StatusBadge status={state.status} />{' '}
          <span class="hint">
            <Elapsed
              from={state.start_timestamp}
              seconds={state.end_timestamp === undefined ? undefined : (state.elapsed_seconds ?? 0)}
            />
          </span>
        </>
      )}
    </p>
  )
}

/** Of the executions that were started, as they change. What cannot be had leaves out the status alone. */
function useStates(rules: readonly ExplainedRule[]): ReadonlyMap<string, ExecutionState> {
  const ids = rules.flatMap(({ enforcement }) => enforcement?.execution_id ?? [])
  const { data, reload, set } = useLoaded(
    async (signal) => new Map((await executionStates(ids, signal)).map((state) => [state.id, state])),
    [ids.join()],
  )
  const known = useRef<ReadonlyMap<string, ExecutionState>>(noStates)
  known.current = data ?? noStates
  useExecutionEvents({
    onOpen() {
      if (known.current.size > 0) reload()
    },
    onExecution(execution, change) {
      const before = known.current.get(execution.id)
      if (before === undefined || change === 'delete') return
      known.current = new Map(known.current).set(execution.id, laterOf<ExecutionState>(before, execution))
      set(new Map(known.current))
    },
  })
  return data ?? noStates
}
