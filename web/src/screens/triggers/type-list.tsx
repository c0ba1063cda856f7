import type { JSX } from 'preact'
import { useId, useMemo, useState } from 'preact/hooks'
import { list } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { RuleRecord, TriggerRecord, TriggerTypeRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { LongText } from '../../components/long-text.tsx'
import { parametersLine } from '../../components/rules/trigger-line.ts'
import { hrefOf, setQuery } from '../../router.ts'
import { byPack, joined, type TypeWithTriggers } from './type-search.ts'

const PAGE = 100
const MAX_TYPES = 2000
const SHOWN_AT_ONCE = 100

/** What rules can react to, and what they do react to. */
export function TypeList({ query }: { query: URLSearchParams }): JSX.Element {
  const search = query.get('search') ?? ''
  const id = useId()
  const { data, error, reload } = useLoaded(async (signal) => {
    const types: TriggerTypeRecord[] = []
    let total = 1
    while (types.length < Math.min(total, MAX_TYPES)) {
      const page = await list<TriggerTypeRecord>('triggertypes', { limit: PAGE, offset: types.length }, signal)
      ;({ total } = page)
      if (page.items.length === 0) break
      types.push(...page.items)
    }
    const [triggers, rules] = await Promise.all([
      list<TriggerRecord>('triggers', {}, signal),
      list<Pick<RuleRecord, 'trigger'>>('rules', { include_attributes: 'trigger.ref' }, signal),
    ])
    return joined(
      types,
      triggers.items,
      rules.items.map(({ trigger }) => trigger.ref),
    )
  }, [])
  const packs = useMemo(() => [...byPack(data ?? [], search)], [data, search])
  return (
    <>
      <form class="toolbar" role="search" onSubmit={(event) => event.preventDefault()}>
        <div class="field grow">
          <label for={id}>Find a trigger type</label>
          <input
            id={id}
            type="search"
            placeholder="Name or description"
            autocomplete="off"
            spellcheck={false}
            value={search}
            onInput={(event) => setQuery({ search: event.currentTarget.value }, { replace: true })}
          />
        </div>
      </form>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <p class="loading">Loading…</p>}
      {data !== undefined && packs.length === 0 && (
        <p class="empty">
          No trigger type has all of these words. <a href={hrefOf(['triggers'])}>Show all of them</a>
        </p>
      )}
      {packs.map(([pack, types]) => (
        <section key={pack} class="card" aria-label={`Pack ${pack}`}>
          <h2>{pack}</h2>
          <Types types={types} />
        </section>
      ))}
    </>
  )
}

function Types({ types }: { types: readonly TypeWithTriggers[] }): JSX.Element {
  const [shown, setShown] = useState(SHOWN_AT_ONCE)
  return (
    <>
      {types.slice(0, shown).map((one) => (
        <Type key={one.type.id} {...one} />
      ))}
      {types.length > shown && (
        <button type="button" onClick={() => setShown(shown + SHOWN_AT_ONCE)}>
          {types.length - shown} more types
        </button>
      )}
    </>
  )
}

function Type({ type, triggers }: TypeWithTriggers): JSX.Element {
  const { ref, description, parameters_schema: parameters, payload_schema: payload } = type
  const [isOpen, setIsOpen] = useState(false)
  const rules = triggers.reduce((sum, one) => sum + one.rules, 0)
  return (
    <details class="triggers-type" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        <strong>{ref}</strong> <span class="hint">{counted(rules, 'rule')}</span>
        <span class="description">{description.slice(0, 200)}</span>
      </summary>
      {isOpen && (
        <div class="triggers-type-content">
          {description.length > 200 && (
            <p>
              <LongText text={description} />
            </p>
          )}
          <p class="triggers-links">
            <a href={hrefOf(['rules', 'new'], { trigger: ref })}>Make a rule of it</a>
            <a href={hrefOf(['rules'], { trigger: ref })}>Its rules</a>
            <a href={hrefOf(['triggers', 'instances'], { trigger_type: ref })}>What has happened</a>
          </p>
          <Triggers triggers={triggers} />
          <div class="triggers-schemas">
            <Schema title="Parameters" schema={parameters} empty="It takes none." />
            <Schema title="Payload" schema={payload} empty="It may be anything." />
          </div>
        </div>
      )}
    </details>
  )
}

function Schema({ title, schema, empty }: { title: string; schema: object; empty: string }): JSX.Element {
  return (
    <div>
      <h3>{title}</h3>
      {Object.keys(schema).length === 0 ? <p class="hint">{empty}</p> : <JsonTree value={schema} name="schema" />}
    </div>
  )
}

function Triggers({ triggers }: Pick<TypeWithTriggers, 'triggers'>): JSX.Element {
  const [shown, setShown] = useState(SHOWN_AT_ONCE)
  if (triggers.length === 0) return <p class="hint">No rule names it yet, so it has no trigger.</p>
  return (
    <>
      <div class="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Trigger</th>
              <th scope="col">Rules</th>
              <th scope="col">What has happened</th>
            </tr>
          </thead>
          <tbody>
            {triggers.slice(0, shown).map(({ trigger, rules }) => (
              <tr key={trigger.id}>
                <td>
                  <code>{parametersLine(trigger.type, trigger.parameters) || trigger.ref}</code>
                </td>
                <td>{rules}</td>
                <td>
                  <a href={hrefOf(['triggers', 'instances'], { trigger: trigger.ref })}>trigger instances</a>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {triggers.length > shown && (
        <button type="button" onClick={() => setShown(shown + SHOWN_AT_ONCE)}>
          {triggers.length - shown} more triggers
        </button>
      )}
    </>
  )
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}
