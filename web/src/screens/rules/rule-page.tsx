import type { ComponentChildren, JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { change, get, messageOf } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { RuleRecord } from '../../api/records.ts'
import { Confirm } from '../../components/dialog.tsx'
import { Failure } from '../../components/failure.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { LongText } from '../../components/long-text.tsx'
import { notify } from '../../components/notices.tsx'
import { criterionSentences } from '../../components/rules/criteria-text.ts'
import { useOperators } from '../../components/rules/operators.ts'
import { Criteria } from '../../components/rules/verdict.tsx'
import { hrefOf, navigate } from '../../router.ts'
import { DefinitionView } from './definition-view.tsx'
import { Enforcements } from './enforcements.tsx'
import { definitionOfRecord } from './rule-model.ts'
import { RuleSwitch } from './rule-switch.tsx'
import { TestPanel } from './test-panel.tsx'
import { useRecorded } from './use-recorded.ts'

export function RulePage({ ruleRef, query }: { ruleRef: string; query: URLSearchParams }): JSX.Element {
  const { data, error, reload, set } = useLoaded(
    async (signal) => {
      const ref = encodeURIComponent(ruleRef)
      const [rule, view] = await Promise.all([
        get<RuleRecord>(`rules/${ref}`, undefined, signal),
        // What action and trigger say about themselves is no part of the rule.
        get<RuleRecord>(`rules/views/${ref}`, undefined, signal),
      ])
      return { rule, view }
    },
    [ruleRef],
    ['rule', 'trigger', 'action'],
  )
  return (
    <div class="page rules">
      <p class="rules-back">
        <a href={hrefOf(['rules'])}>← All rules</a>
      </p>
      {error !== undefined && data === undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <p class="loading">Loading…</p>}
      {data !== undefined && (
        <Rule {...data} instance={query.get('instance') ?? undefined} onChange={(rule) => set({ ...data, rule })} />
      )}
    </div>
  )
}

function Rule({
  rule,
  view,
  instance,
  onChange,
}: {
  rule: RuleRecord
  view: RuleRecord
  instance: string | undefined
  onChange: (rule: RuleRecord) => void
}): JSX.Element {
  const { ref, description, criteria, type, context, tags } = rule
  const { trigger, action } = view
  const [isDeleting, setIsDeleting] = useState(false)
  const recorded = useRecorded({ trigger: trigger.ref, type: trigger.type }, instance)
  const sentences = criterionSentences(criteria, useOperators().byName)
  const definition = useMemo(() => definitionOfRecord(rule), [rule])

  async function remove(): Promise<void> {
    try {
      await change('DELETE', `rules/${encodeURIComponent(ref)}`)
      notify(`Rule ${ref} deleted.`)
      navigate(hrefOf(['rules']))
    } catch (failure) {
      notify(`Could not delete rule ${ref}: ${messageOf(failure)}`, 'failure')
    }
  }

  return (
    <>
      <header class="page-head">
        <h1>{ref}</h1>
        <RuleSwitch rule={rule} onChange={onChange} />
        {type.ref === 'backstop' && (
          <span class="badge" title="Fires only when no standard rule of the trigger matches.">
            backstop
          </span>
        )}
        <span class="spacer" />
        <a class="button primary" href={hrefOf(['rules', ref, 'edit'])}>
          Edit
        </a>
        <a class="button" href={hrefOf(['rules', 'new'], { copy: ref })}>
          Copy as new
        </a>
        <button type="button" class="danger" onClick={() => setIsDeleting(true)}>
          Delete
        </button>
      </header>
      {description !== '' && (
        <p>
          <LongText text={description} />
        </p>
      )}
      <div class="rules-columns">
        <div class="rules-main">
          <section class="card" aria-label="Rule">
            <Part title="When">
              <a href={hrefOf(['rules'], { trigger: trigger.type })}>{trigger.type}</a>
              {trigger.description !== undefined && trigger.description !== '' && (
                <p class="hint">
                  <LongText text={trigger.description} />
                </p>
              )}
              {Object.keys(trigger.parameters).length > 0 && <JsonTree value={trigger.parameters} name="parameters" />}
              <p class="hint">
                <a href={hrefOf(['triggers', 'instances'], { trigger: trigger.ref })}>Trigger instances</a>
              </p>
            </Part>
            <Part title="If">
              {sentences.length === 0 ? <p class="hint">always: no criteria</p> : <Criteria sentences={sentences} />}
            </Part>
            <Part title="Then">
              <a href={hrefOf(['actions', action.ref])}>{action.ref}</a>
              {action.description !== undefined && action.description !== '' && (
                <p class="hint">
                  <LongText text={action.description} />
                </p>
              )}
              {Object.keys(action.parameters).length > 0 ? (
                <JsonTree value={action.parameters} name="parameters" />
              ) : (
                <p class="hint">no parameters</p>
              )}
            </Part>
          </section>
          <Enforcements ruleId={rule.id} />
        </div>
        <aside class="rules-side" aria-label={`About ${ref}`}>
          <TestPanel recorded={recorded} subject={rule} ruleOf={() => ({ rule_ref: rule.id })} />
          <section class="card">
            <h2>About</h2>
            <dl class="facts">
              <dt>Pack</dt>
              <dd>{rule.pack}</dd>
              <dt>Author</dt>
              <dd>{context.user}</dd>
              {rule.metadata_file !== undefined && (
                <>
                  <dt>File</dt>
                  <dd>
                    {rule.metadata_file}
                    <p class="hint">Registering the pack again restores the rule of the file.</p>
                  </dd>
                </>
              )}
              {tags.length > 0 && (
                <>
                  <dt>Tags</dt>
                  <dd>
                    {tags.slice(0, 50).map(({ name, value }, i) => (
                      <span key={i} class="badge">
                        {value === '' ? name : `${name}: ${value}`}
                      </span>
                    ))}
                  </dd>
                </>
              )}
            </dl>
          </section>
          <DefinitionView definition={definition} />
        </aside>
      </div>
      {isDeleting && (
        <Confirm
          title={`Delete rule ${ref}?`}
          text="The rule no longer fires. Its executions stay in the history."
          action="Delete rule"
          onConfirm={() => void remove()}
          onClose={() => setIsDeleting(false)}
        />
      )}
    </>
  )
}

function Part({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class="rules-part">
      <h2>{title}</h2>
      <div class="rules-part-content">{children}</div>
    </div>
  )
}
