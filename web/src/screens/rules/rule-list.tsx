import type { JSX } from 'preact'
import { useEffect, useId, useMemo, useRef } from 'preact/hooks'
import { list } from '../../api/client.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import { useLoaded } from '../../api/load.ts'
import { Failure } from '../../components/failure.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time } from '../../components/time.tsx'
import { triggerLine } from '../../components/rules/trigger-line.ts'
import { VirtualList } from '../../components/virtual-list.tsx'
import { hrefOf, setQuery } from '../../router.ts'
import { listedAttributes, ruleRows, type ListedRule, type RuleFilter, type RuleRow } from './rule-search.ts'
import { RuleSwitch } from './rule-switch.tsx'
import { countText } from '../../text.ts'

const ROW_HEIGHT = 62
const MAX_LIVE = 500
const RELOAD_MS = 2000

export function RuleList({ query }: { query: URLSearchParams }): JSX.Element {
  const { data, error, reload, set } = useLoaded(
    async (signal) => (await list<ListedRule>('rules/views', { include_attributes: listedAttributes }, signal)).items,
    [],
    ['rule', 'trigger'],
  )
  const filter: RuleFilter = {
    search: query.get('search') ?? '',
    enabled: query.get('enabled') ?? '',
    trigger: query.get('trigger') ?? '',
    action: query.get('action') ?? '',
  }
  const { search, enabled, trigger, action } = filter
  const rules = data ?? []
  const rows = useMemo(() => ruleRows(rules, filter), [data, search, enabled, trigger, action])
  const triggers = useMemo(() => distinct(rules.map((rule) => rule.trigger.type)), [data])
  const actions = useMemo(() => distinct(rules.map((rule) => rule.action.ref)), [data])
  const found = rows.filter(({ kind }) => kind === 'rule').length
  const searchId = useId()
  const soon = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(soon.current), [])
  useExecutionEvents({
    onExecution() {
      // The last enforcement; a long list is loaded again on request only.
      if (soon.current !== undefined || rules.length > MAX_LIVE || document.hidden) return
      soon.current = setTimeout(() => {
        soon.current = undefined
        reload()
      }, RELOAD_MS)
    },
  })
  return (
    <div class="page fill rules">
      <header class="page-head">
        <h1>Rules</h1>
        <span class="spacer" />
        <a class="button primary" href={hrefOf(['rules', 'new'])}>
          Create rule
        </a>
      </header>
      <form class="toolbar" role="search" onSubmit={(event) => event.preventDefault()}>
        <div class="field grow">
          <label for={searchId}>Find a rule</label>
          <input
            id={searchId}
            type="search"
            placeholder="Name, description, trigger or action"
            autocomplete="off"
            spellcheck={false}
            value={search}
            onInput={(event) => setQuery({ search: event.currentTarget.value }, { replace: true })}
          />
        </div>
        <Choice
          label="Enabled"
          name="enabled"
          value={enabled}
          options={['true', 'false']}
          titles={['enabled', 'disabled']}
        />
        <Choice label="Trigger type" name="trigger" value={trigger} options={triggers} />
        <Choice label="Action" name="action" value={action} options={actions} />
      </form>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <p class="loading">Loading…</p>}
      {data !== undefined && (
        <>
          <p class="hint" role="status">
            {found === rules.length ? countText(found, 'rule') : `${found} of ${countText(rules.length, 'rule')}`}
          </p>
          {rows.length === 0 ? (
            <Nothing isFiltered={rules.length > 0} />
          ) : (
            <VirtualList
              label="Rules by pack"
              count={rows.length}
              rowHeight={ROW_HEIGHT}
              row={(index) => {
                const row = rows[index]
                if (row === undefined) return null
                return (
                  <Row
                    key={row.kind === 'rule' ? row.rule.id : `pack ${row.pack}`}
                    row={row}
                    onChange={(changed) =>
                      set(rules.map((rule) => (rule.id === changed.id ? { ...rule, enabled: changed.enabled } : rule)))
                    }
                  />
                )
              }}
            />
          )}
        </>
      )}
    </div>
  )
}

function Choice({
  label,
  name,
  value,
  options,
  titles = options,
}: {
  label: string
  name: string
  value: string
  options: readonly string[]
  titles?: readonly string[]
}): JSX.Element {
  const id = useId()
  // What an address asks for is shown even when there is no such rule.
  const shown = value === '' || options.includes(value) ? options : [value, ...options]
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => setQuery({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {shown.map((option) => (
          <option key={option} value={option}>
            {titles[options.indexOf(option)] ?? option}
          </option>
        ))}
      </select>
    </div>
  )
}

function Nothing({ isFiltered }: { isFiltered: boolean }): JSX.Element {
  return (
    <div class="empty">
      {isFiltered ? (
        <>
          <p>No rules match the search and the filters.</p>
          <a href={hrefOf(['rules'])}>Show all rules</a>
        </>
      ) : (
        <p>
          No rules, or none that you may see. A rule runs an action on an event:{' '}
          <a href={hrefOf(['rules', 'new'])}>create a rule</a>.
        </p>
      )}
    </div>
  )
}

function Row({
  row,
  onChange,
}: {
  row: RuleRow
  onChange: (rule: { id: string; enabled: boolean }) => void
}): JSX.Element {
  if (row.kind === 'pack') {
    return (
      <div class="rules-pack">
        <span class="name">{row.pack}</span> <span class="count">{row.count}</span>
      </div>
    )
  }
  const { ref, name, description, trigger, action, type } = row.rule
  const line = `${triggerLine(trigger)} → ${action.ref}`
  return (
    <div class="rules-row">
      <a class="rules-link" href={hrefOf(['rules', ref])}>
        <span class="rules-name" title={ref}>
          {name}
          {type.ref === 'backstop' && <span class="badge">backstop</span>}
        </span>
        <span class="rules-line" title={line}>
          {line}
        </span>
        <span class="rules-description">{description.slice(0, 300)}</span>
      </a>
      <Last last={row.rule.last_enforcement} />
      <RuleSwitch rule={row.rule} onChange={onChange} />
    </div>
  )
}

function Last({ last }: { last: ListedRule['last_enforcement'] }): JSX.Element {
  if (last === undefined || last === null) return <span class="rules-last">never fired</span>
  const { status, enforced_at: at, execution_id: execution, execution_status: outcome } = last
  return (
    <span class="rules-last">
      <Time at={at} />
      {execution === undefined ? (
        <span title={(last.failure_reason ?? last.skip_reason)?.slice(0, 500)}>
          <StatusBadge status={status} /> no execution
        </span>
      ) : (
        <a href={hrefOf(['history', execution])}>
          {outcome === undefined ? 'execution' : <StatusBadge status={outcome} />}
        </a>
      )}
    </span>
  )
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)].toSorted()
}
