/** What a rule would do with something that has happened. Nothing is run. */
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { change, messageOf } from '../../api/client.ts'
import type { RuleTestRequest, RuleTestResult } from '../../api/records.ts'
import { JsonTree } from '../../components/json-tree.tsx'
import { SeenCriteria, VerdictBadge, VerdictReason } from '../../components/rules/verdict.tsx'
import { RecordedEvent } from './recorded-event.tsx'
import type { Recorded } from './use-recorded.ts'

export interface TestPanelProps {
  recorded: Recorded
  /** Undefined: the rule cannot be tried as it is, and has said so. */
  ruleOf: () => Pick<RuleTestRequest, 'rule' | 'rule_ref'> | undefined
  /** What the verdict is about; a verdict on something else goes away. */
  subject: unknown
  /** Shows a refusal where it belongs. @returns what to show here */
  onRefusal?: (error: unknown) => string | undefined
  children?: ComponentChildren
}

export function TestPanel({ recorded, ruleOf, subject, onRefusal, children }: TestPanelProps): JSX.Element {
  const [result, setResult] = useState<RuleTestResult>()
  const [problem, setProblem] = useState<string>()
  const [isBusy, setIsBusy] = useState(false)
  const round = useRef(0)
  const { request, choice, text } = recorded

  // A result is about the rule and the event that are shown.
  useEffect(() => {
    round.current += 1
    setResult(undefined)
    setProblem(undefined)
    setIsBusy(false)
  }, [subject, choice, text])

  async function test(): Promise<void> {
    setResult(undefined)
    setProblem(undefined)
    const rule = ruleOf()
    if (rule === undefined) {
      setProblem('Could not test the rule: correct the marked parts first.')
      return
    }
    if (request === undefined) {
      setProblem('Choose a recorded event, or paste a JSON payload.')
      return
    }
    round.current += 1
    const own = round.current
    setIsBusy(true)
    try {
      const answer = await change<RuleTestResult>('POST', 'rules/test', { ...rule, ...request })
      if (own === round.current) setResult(answer)
    } catch (error) {
      if (own === round.current) setProblem(onRefusal === undefined ? messageOf(error) : onRefusal(error))
    } finally {
      if (own === round.current) setIsBusy(false)
    }
  }

  return (
    <section class="card rules-test" aria-label="Test against a recorded event">
      <h2>Test against a recorded event</h2>
      <RecordedEvent recorded={recorded} />
      <div class="buttons">
        <button type="button" disabled={isBusy} onClick={() => void test()}>
          {isBusy ? 'Testing…' : 'Test rule'}
        </button>
      </div>
      <div role="status" class="rules-verdict">
        {problem !== undefined && <p class="problem">{problem}</p>}
        {result !== undefined && <Result result={result} />}
      </div>
      {children}
    </section>
  )
}

function Result({ result }: { result: RuleTestResult }): JSX.Element {
  const { matches, verdict, criteria, parameters, problem, payload_reduced: withheld } = result
  const { reason, reduced } = verdict
  const isNews = problem !== undefined && problem !== verdict.reason
  return (
    <>
      <p>
        The rule <VerdictBadge verdict={verdict.verdict} />
        {matches ? ' this event. The test ran no action.' : ' this event.'}
      </p>
      {criteria.length > 0 ? <SeenCriteria criteria={criteria} /> : <VerdictReason verdict={verdict} />}
      {criteria.length > 0 &&
        verdict.reason !== undefined &&
        !criteria.some(({ reason }) => reason === verdict.reason) && <p>{verdict.reason}</p>}
      {criteria.length > 0 && reduced !== undefined && reason?.includes(reduced) !== true && (
        <p class="hint">{reduced}</p>
      )}
      {withheld !== undefined && <p class="hint">{withheld}</p>}
      {isNews && (
        <p class="problem">
          {matches && 'It would start no execution: '}
          {problem}
        </p>
      )}
      {parameters !== undefined && (
        <>
          <h3>Action parameters</h3>
          {Object.keys(parameters).length === 0 ? (
            <p class="hint">no parameters</p>
          ) : (
            <JsonTree value={parameters} name="parameters" />
          )}
        </>
      )}
    </>
  )
}
