import type { JSX } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import { addressOf, messageOf } from '../../api/client.ts'
import { serverNow } from '../../api/server-clock.ts'
import { session } from '../../api/session.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { useMedia } from '../../components/media.ts'
import { VirtualList } from '../../components/virtual-list.tsx'
import { hrefOf, setQuery } from '../../router.ts'
import { useStore } from '../../store.ts'
import { exampleOf } from './example.ts'
import { findHooks, GENERIC_HOOK, pathOfHook, type Hook } from './hooks.ts'
import { recipesOf, authenticationTitle } from './authentication.ts'
import { useRules, type HookRule, type RulesByTrigger } from './use-rules.ts'

const WIDE_ROW = 62
const NARROW_ROW = 128
const MAX_RULES_SHOWN = 3

export function HookList({ hooks, search }: { hooks: readonly Hook[]; search: string }): JSX.Element {
  const found = useMemo(() => findHooks(hooks, search), [hooks, search])
  const rules = useRules()
  const isNarrow = useMedia('(max-width: 800px)')
  return (
    <div class="page fill webhooks">
      <div class="page-head">
        <h1>Webhooks</h1>
        <span class="hint">{hooks.length === 1 ? '1 webhook' : `${hooks.length} webhooks`}</span>
        <span class="spacer" />
        <input
          type="search"
          aria-label="Find a webhook"
          placeholder="Find a webhook"
          value={search}
          onInput={(event) => setQuery({ search: event.currentTarget.value }, { replace: true })}
        />
      </div>
      {rules.error !== undefined && <p class="hint">Could not load the rules: {messageOf(rules.error)}</p>}
      {hooks.length === 0 ? (
        <NoHooks />
      ) : found.length === 0 ? (
        <p class="empty">No webhook name contains “{search.slice(0, 100)}”.</p>
      ) : (
        <VirtualList
          count={found.length}
          rowHeight={isNarrow ? NARROW_ROW : WIDE_ROW}
          label="Webhooks"
          row={(index) => {
            const hook = found[index]
            return hook === undefined ? null : <HookRow hook={hook} rules={rules} />
          }}
        />
      )}
      <p class="hint webhooks-generic">
        Programs can also send events to <a href={hrefOf(['webhooks', GENERIC_HOOK])}>the generic webhook</a>, which
        always exists.
      </p>
    </div>
  )
}

function NoHooks(): JSX.Element {
  return (
    <div class="empty">
      <p>No webhooks yet.</p>
      <p>
        A rule creates a webhook: <a href={hrefOf(['rules'])}>create a rule</a> with the trigger type{' '}
        <code>core.svc.webhook</code>and the end of the address as its parameter <code>url</code>.
      </p>
    </div>
  )
}

function HookRow({ hook, rules }: { hook: Hook; rules: RulesByTrigger }): JSX.Element {
  const { user } = useStore(session.state)
  const hasLogin = user?.method !== undefined
  const { name, triggers } = hook
  useEffect(() => rules.need(triggers.map(({ ref }) => ref)), [hook])
  const address = addressOf(`api/v1/${pathOfHook(name)}`).href
  const listening = rulesOfHook(hook, rules)
  const proofs = [...new Set(triggers.map(({ parameters }) => authenticationTitle(parameters.signature, hasLogin)))]
  const example = exampleOf(listening ?? [], new Date(serverNow()))
  const [recipe] = recipesOf(triggers[0].parameters.signature, { address, hasLogin, ...example })
  return (
    <div class="hook-row">
      <div class="hook-name">
        <a href={hrefOf(['webhooks', name])}>{name}</a>
        <span class="hint code" title={address}>
          {address}
        </span>
      </div>
      <span class="hook-proof" title="Authentication of senders">
        {proofs.join(', ')}
      </span>
      <span class="hook-rules">
        <RuleLinks rules={listening} more={name} />
      </span>
      <span class="buttons">
        <CopyButton text={address} title="Copy address" />
        {recipe !== undefined && <CopyButton text={recipe.text} title="Copy curl" />}
      </span>
    </div>
  )
}

/** Undefined before they are known. */
export function rulesOfHook({ triggers }: Hook, rules: RulesByTrigger): HookRule[] | undefined {
  const found = triggers.map(({ ref }) => rules.of(ref))
  return found.some((some) => some === undefined) ? undefined : found.flatMap((some) => some ?? [])
}

function RuleLinks({ rules, more }: { rules: readonly HookRule[] | undefined; more: string }): JSX.Element {
  if (rules === undefined) return <span class="hint">…</span>
  return (
    <>
      {rules.slice(0, MAX_RULES_SHOWN).map((rule) => (
        <RuleLink key={rule.id} rule={rule} />
      ))}
      {rules.length > MAX_RULES_SHOWN && (
        <a href={hrefOf(['webhooks', more])}>and {rules.length - MAX_RULES_SHOWN} more</a>
      )}
      {rules.length === 0 && <span class="hint">no rules that you may see</span>}
    </>
  )
}

export function RuleLink({ rule: { ref, enabled } }: { rule: Pick<HookRule, 'ref' | 'enabled'> }): JSX.Element {
  return (
    <span class="rule-link">
      <a href={hrefOf(['rules', ref])} title={ref}>
        {ref}
      </a>
      {!enabled && <span class="badge">disabled</span>}
    </span>
  )
}
