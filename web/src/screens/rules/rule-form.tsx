/** A rule as a form: what it is called, when it reacts, to what, and what it runs. */
import type { JSX } from 'preact'
import { useId } from 'preact/hooks'
import type { PayloadPath } from '../../components/rules/paths.ts'
import { CriteriaEditor } from './criteria-editor.tsx'
import { ParameterFields, TextField } from './rule-fields.tsx'
import type { Problems, RuleDraft } from './rule-model.ts'
import type { RuleReference } from './use-rule-reference.ts'

export interface RuleFormProps {
  draft: RuleDraft
  onDraft: (changed: Partial<RuleDraft>) => void
  problems: Problems
  trigger: RuleReference
  action: RuleReference
  /** Suggested for keys of criteria. */
  paths: readonly PayloadPath[]
}

export function RuleForm(props: RuleFormProps): JSX.Element {
  const { draft, onDraft: edit, problems, trigger, action, paths } = props
  const id = useId()
  return (
    <>
      <section class="card form" aria-label="Rule">
        <div class="rules-names">
          <TextField
            label="Name"
            value={draft.name}
            onText={(name) => edit({ name })}
            problem={problems.get('name')}
            isRequired
          />
          <TextField label="Pack" value={draft.pack} onText={(pack) => edit({ pack })} problem={problems.get('pack')} />
        </div>
        <TextField
          label="Description"
          value={draft.description}
          onText={(description) => edit({ description })}
          problem={problems.get('description')}
        />
        <div class="rules-names">
          <div class="field">
            <label for={`${id}-kind`}>Kind</label>
            <select
              id={`${id}-kind`}
              value={draft.type}
              aria-invalid={problems.has('type')}
              aria-describedby={`${id}-kind-problem`}
              onChange={(event) => edit({ type: event.currentTarget.value })}
            >
              <option value="standard">standard: fires on every match</option>
              <option value="backstop">backstop: fires when no standard rule matches</option>
              {!['standard', 'backstop'].includes(draft.type) && <option value={draft.type}>{draft.type}</option>}
            </select>
            <p class="problem" id={`${id}-kind-problem`}>
              {problems.get('type')}
            </p>
          </div>
          <div class="field rules-enabled">
            <label>
              <input
                type="checkbox"
                checked={draft.enabled}
                onChange={(event) => edit({ enabled: event.currentTarget.checked })}
              />{' '}
              Enabled
            </label>
          </div>
        </div>
      </section>
      <section class="card form" aria-label="When">
        <h2>When</h2>
        <TextField
          label="Trigger type"
          value={draft.triggerType}
          onText={(triggerType) => edit({ triggerType })}
          problem={problems.get('trigger')}
          isRequired
          reference={{ of: trigger, placeholder: 'core.svc.webhook' }}
        />
        <ParameterFields
          of={trigger}
          what="trigger type"
          problem={problems.get('triggerParameters')}
          emptyText="No parameters."
        />
      </section>
      <section class="card form" aria-label="If">
        <h2>If all criteria match</h2>
        <datalist id={`${id}-paths`}>
          {paths.map(({ path, preview }) => (
            <option key={path} value={path}>
              {preview}
            </option>
          ))}
        </datalist>
        <CriteriaEditor
          rows={draft.criteria}
          onRows={(criteria) => edit({ criteria })}
          problems={problems}
          pathsId={`${id}-paths`}
        />
      </section>
      <section class="card form" aria-label="Then">
        <h2>Then run</h2>
        <TextField
          label="Action"
          value={draft.actionRef}
          onText={(ref) => edit({ actionRef: ref })}
          problem={problems.get('action')}
          isRequired
          reference={{ of: action, placeholder: 'core.local' }}
        />
        <ParameterFields
          of={action}
          what="action"
          problem={problems.get('actionParameters')}
          emptyText="No parameters."
        />
      </section>
    </>
  )
}
