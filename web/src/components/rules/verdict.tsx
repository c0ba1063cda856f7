/** What a rule made of a trigger instance, or would make of it, and why. */
import type { JSX } from 'preact'
import type { RuleTestResult, RuleVerdict } from '../../api/records.ts'
import { LongText } from '../long-text.tsx'
import { criterionSentence, patternText, type CriterionSentence } from './criteria-text.ts'
import { useOperators } from './operators.ts'
import './rules.css'

export const verdictTitles: Readonly<Record<RuleVerdict['verdict'], string>> = {
  matched: 'matches',
  not_matched: 'does not match',
  failed: 'cannot be compared',
  disabled: 'is disabled',
  not_needed: 'not needed',
}

const explanations: Partial<Record<RuleVerdict['verdict'], string>> = {
  disabled: 'A disabled rule never fires.',
  not_needed: 'A backstop rule fires only when no standard rule matches. One does.',
}

export function VerdictBadge({ verdict }: { verdict: RuleVerdict['verdict'] }): JSX.Element {
  return (
    <span class="badge" data-status={verdict === 'failed' ? 'failed' : verdict}>
      {verdictTitles[verdict] ?? verdict}
    </span>
  )
}

/** The criterion that did not hold, the value that it saw, and what else is known. */
export function VerdictReason({ verdict }: { verdict: RuleVerdict }): JSX.Element | null {
  const { criterion, reason, reduced } = verdict
  const explanation = explanations[verdict.verdict]
  const operators = useOperators().byName
  if (criterion === undefined && reason === undefined && reduced === undefined && explanation === undefined) return null
  return (
    <div class="verdict-reason">
      {explanation !== undefined && <p>{explanation}</p>}
      {criterion !== undefined && (
        <dl class="facts">
          <dt>Criterion</dt>
          <dd>
            <Criterion sentence={criterionSentence(criterion.key, criterion, operators)} />
          </dd>
          <dt>Actual value</dt>
          <dd>
            <code>
              <LongText text={patternText(criterion.value)} />
            </code>
            {criterion.value === null && <span class="hint"> (no value at this key)</span>}
          </dd>
        </dl>
      )}
      {reason !== undefined && (
        <p class={verdict.verdict === 'failed' ? 'problem' : undefined}>
          <LongText text={reason} />
        </p>
      )}
      {reduced !== undefined && reason?.includes(reduced) !== true && (
        <p class="hint">
          <LongText text={reduced} />
        </p>
      )}
    </div>
  )
}

export function Criteria({ sentences }: { sentences: readonly CriterionSentence[] }): JSX.Element {
  return (
    <ul class="criteria">
      {sentences.map((sentence) => (
        <li key={sentence.key}>
          <Criterion sentence={sentence} />
        </li>
      ))}
    </ul>
  )
}

function Criterion({ sentence }: { sentence: CriterionSentence }): JSX.Element {
  const { key, phrase, pattern, items } = sentence
  return (
    <>
      <code>
        <LongText text={key} maxLength={200} />
      </code>{' '}
      {phrase}{' '}
      {pattern !== undefined && (
        <code class="pattern">
          <LongText text={pattern} maxLength={300} />
        </code>
      )}
      {items.length > 0 && <Criteria sentences={items} />}
    </>
  )
}

/** All criteria of a test, each with what it saw. */
export function SeenCriteria({ criteria }: { criteria: RuleTestResult['criteria'] }): JSX.Element {
  const operators = useOperators().byName
  return (
    <ul class="seen-criteria">
      {criteria.map((criterion, i) => (
        <li key={i} data-holds={criterion.holds}>
          <p>
            <span class="badge" data-status={criterion.holds ? 'matched' : 'failed'}>
              {criterion.holds ? 'holds' : 'does not hold'}
            </span>{' '}
            <Criterion sentence={criterionSentence(criterion.key, criterion, operators)} />
          </p>
          <p class="hint">
            Actual value:{' '}
            <code>
              <LongText text={patternText(criterion.value)} />
            </code>
            {criterion.value === null && ' (no value at this key)'}
          </p>
          {criterion.reason !== undefined && (
            <p class="problem">
              <LongText text={criterion.reason} />
            </p>
          )}
        </li>
      ))}
    </ul>
  )
}
