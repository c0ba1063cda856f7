import type { JSX } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { get } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { PermissionTypes } from '../../api/records.ts'
import type { SessionUser } from '../../api/session.ts'
import { JsonField } from '../../components/form/json-field.tsx'
import { Time } from '../../components/time.tsx'
import {
  emptyScope,
  presets,
  resourceHintFor,
  typesOf,
  type Expiry,
  type KeyForm,
  type KeyProblems,
  type ScopeForm,
} from './key-form.ts'

const MAX_SCOPES = 100

const expiries: readonly (readonly [value: Expiry, title: string])[] = [
  ['never', 'never'],
  ['1', 'in a day'],
  ['7', 'in a week'],
  ['30', 'in 30 days'],
  ['90', 'in 90 days'],
  ['365', 'in a year'],
  ['at', 'at a set time…'],
]

export interface KeyFieldsProps {
  form: KeyForm
  /** @param edited what differs from the form before */
  onForm: (form: KeyForm, edited: Partial<KeyForm>) => void
  problems: KeyProblems
  user: SessionUser
  isNew?: boolean
  /** Wire timestamp; of a key that exists. */
  expiresAt?: string | undefined
}

export function KeyFields({ form, onForm, problems, user, isNew = false, expiresAt }: KeyFieldsProps): JSX.Element {
  const id = useId()
  const element = useRef<HTMLDivElement>(null)
  const set = (edited: Partial<KeyForm>): void => onForm({ ...form, ...edited }, edited)
  useEffect(() => {
    if (Object.keys(problems).length === 0) return
    element.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [problems])

  return (
    <div class="form" ref={element}>
      <div class="field">
        <label for={`${id}-used-by`}>Used by</label>
        <input
          id={`${id}-used-by`}
          value={form.usedBy}
          maxLength={1000}
          placeholder="the deploy job of the shop"
          aria-describedby={`${id}-used-by-help`}
          onInput={(event) => set({ usedBy: event.currentTarget.value })}
        />
        <p class="hint" id={`${id}-used-by-help`}>
          The program that uses the key, and where it runs. A note for people.
        </p>
      </div>
      {user.isAdmin && (
        <div class="field">
          <label for={`${id}-owner`}>Owner</label>
          <input
            id={`${id}-owner`}
            value={form.owner}
            placeholder={isNew ? user.name : ''}
            spellcheck={false}
            autocapitalize="none"
            aria-invalid={problems.owner !== undefined}
            aria-describedby={`${id}-owner-help`}
            onInput={(event) => set({ owner: event.currentTarget.value })}
          />
          <p class={problems.owner === undefined ? 'hint' : 'problem'} id={`${id}-owner-help`}>
            {problems.owner ?? 'The program acts as this user.'}
          </p>
        </div>
      )}
      <div class="field">
        <label for={`${id}-expires`}>Expires</label>
        <div class="buttons">
          <select
            id={`${id}-expires`}
            value={form.expiry}
            onChange={(event) => set({ expiry: event.currentTarget.value as Expiry })} // one of the options
          >
            {!isNew && expiresAt !== undefined && <option value="same">unchanged</option>}
            {expiries.map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
          {form.expiry === 'at' && (
            <input
              type="datetime-local"
              aria-label="Expiry in your time zone"
              value={form.at}
              aria-invalid={problems.at !== undefined}
              aria-describedby={`${id}-at-problem`}
              onInput={(event) => set({ at: event.currentTarget.value })}
            />
          )}
        </div>
        {form.expiry === 'same' && expiresAt !== undefined && (
          <p class="hint">
            <Time at={expiresAt} />
          </p>
        )}
        <p class="problem" id={`${id}-at-problem`}>
          {problems.at}
        </p>
      </div>
      <Scopes form={form} set={set} problems={problems} user={user} />
      <details class="folded" open={form.more !== '' || problems.more !== undefined}>
        <summary>More metadata</summary>
        <JsonField
          label="Metadata, as JSON"
          text={form.more}
          onText={(more) => set({ more })}
          problem={problems.more}
          placeholder='{"team": "web"}'
        />
      </details>
    </div>
  )
}

function Scopes({
  form,
  set,
  problems,
  user,
}: {
  form: KeyForm
  set: (changes: Partial<KeyForm>) => void
  problems: KeyProblems
  user: SessionUser
}): JSX.Element {
  const name = useId()
  // The list is for administrators. Others type the names.
  const { data: types } = useLoaded(
    (signal) =>
      user.isAdmin ? get<PermissionTypes>('rbac/permission_types', {}, signal) : Promise.resolve<PermissionTypes>({}),
    [user.isAdmin],
  )
  const setScope = (i: number, scope: ScopeForm): void => set({ scopes: form.scopes.with(i, scope) })
  return (
    <fieldset class="scopes">
      <legend>Permissions</legend>
      <label class="choice-line">
        <input type="radio" name={name} checked={form.isLimited} onChange={() => set({ isLimited: true })} />
        <span>only the following, within the permissions of its owner</span>
      </label>
      <label class="choice-line">
        <input type="radio" name={name} checked={!form.isLimited} onChange={() => set({ isLimited: false })} />
        <span>
          everything its owner may do, including creating keys and changing users <em>(not recommended)</em>
        </span>
      </label>
      {form.isLimited && (
        <>
          <div class="buttons presets">
            <span class="hint">Presets:</span>
            {presets.map(({ title, scope }) => (
              <button
                key={title}
                type="button"
                onClick={() =>
                  set({
                    scopes: [...form.scopes.filter((known) => typesOf(known).length > 0), scope],
                  })
                }
              >
                {title}
              </button>
            ))}
          </div>
          {form.scopes.map((scope, i) => (
            <Scope
              key={i}
              number={i + 1}
              scope={scope}
              types={types ?? {}}
              problem={problems.scope?.[i]}
              resourceProblem={problems.resource?.[i]}
              onScope={(changed) => setScope(i, changed)}
              onRemove={
                form.scopes.length > 1 ? () => set({ scopes: form.scopes.filter((_, at) => at !== i) }) : undefined
              }
            />
          ))}
          {problems.scopes !== undefined && <p class="problem">{problems.scopes}</p>}
          {form.scopes.length < MAX_SCOPES && (
            <div>
              <button type="button" onClick={() => set({ scopes: [...form.scopes, emptyScope] })}>
                Add resource
              </button>
            </div>
          )}
        </>
      )}
    </fieldset>
  )
}

function Scope({
  number,
  scope,
  types,
  problem,
  resourceProblem,
  onScope,
  onRemove,
}: {
  number: number
  scope: ScopeForm
  types: PermissionTypes
  problem: string | undefined
  resourceProblem: string | undefined
  onScope: (scope: ScopeForm) => void
  onRemove: (() => void) | undefined
}): JSX.Element {
  const id = useId()
  const { permissionTypes, resourceUid } = scope
  const add = (typed: string): void => onScope({ ...scope, permissionTypes: typesOf({ ...scope, typed }), typed: '' })
  return (
    <div class="scope card" role="group" aria-label={`Grant ${number}`}>
      <div class="field">
        <label for={`${id}-types`}>Permission types</label>
        {permissionTypes.length > 0 && (
          <ul class="chips">
            {permissionTypes.map((type) => (
              <li key={type} title={descriptionOf(type, types)}>
                <code>{type}</code>
                <button
                  type="button"
                  class="quiet"
                  aria-label={`Remove ${type}`}
                  onClick={() => onScope({ ...scope, permissionTypes: permissionTypes.filter((one) => one !== type) })}
                >
                  ×
                </button>
              </li>
            ))}
          </ul>
        )}
        {Object.keys(types).length > 0 ? (
          <select
            id={`${id}-types`}
            value=""
            aria-invalid={problem !== undefined}
            aria-describedby={`${id}-problem`}
            onChange={(event) => {
              add(event.currentTarget.value)
              event.currentTarget.value = ''
            }}
          >
            <option value="">Add…</option>
            {Object.entries(types).map(([resource, permissions]) => (
              <optgroup key={resource} label={resource}>
                {Object.entries(permissions).map(([type, description]) => (
                  <option key={type} value={type} disabled={permissionTypes.includes(type)}>
                    {type}: {description}
                  </option>
                ))}
              </optgroup>
            ))}
          </select>
        ) : (
          <div class="buttons">
            <input
              id={`${id}-types`}
              value={scope.typed}
              placeholder="execution_list, execution_view"
              spellcheck={false}
              autocapitalize="none"
              aria-invalid={problem !== undefined}
              aria-describedby={`${id}-problem`}
              onInput={(event) => onScope({ ...scope, typed: event.currentTarget.value })}
              onKeyDown={(event) => {
                if (event.key !== 'Enter') return
                event.preventDefault()
                add(scope.typed)
              }}
            />
            <button type="button" onClick={() => add(scope.typed)}>
              Add
            </button>
          </div>
        )}
      </div>
      <div class="field">
        <label for={`${id}-uid`}>Resource</label>
        <input
          id={`${id}-uid`}
          value={resourceUid}
          placeholder="any"
          spellcheck={false}
          autocapitalize="none"
          maxLength={1024}
          aria-invalid={resourceProblem !== undefined}
          aria-describedby={`${id}-uid-help`}
          onInput={(event) => onScope({ ...scope, resourceUid: event.currentTarget.value })}
        />
        <p class={resourceProblem === undefined ? 'hint' : 'problem'} id={`${id}-uid-help`}>
          {resourceProblem ?? resourceHintFor(permissionTypes)}
        </p>
      </div>
      <p class="problem" id={`${id}-problem`}>
        {problem}
      </p>
      {onRemove !== undefined && (
        <div>
          <button type="button" class="quiet" onClick={onRemove}>
            Remove grant
          </button>
        </div>
      )}
    </div>
  )
}

function descriptionOf(type: string, types: PermissionTypes): string | undefined {
  for (const permissions of Object.values(types)) if (permissions[type] !== undefined) return permissions[type]
  return undefined
}
