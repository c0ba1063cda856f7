/** One webhook: its address, how to send to it, and what was sent last. */
import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { addressOf, ApiError, get, messageOf } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import { serverNow } from '../../api/server-clock.ts'
import { session } from '../../api/session.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Failure } from '../../components/failure.tsx'
import { hrefOf } from '../../router.ts'
import { useStore } from '../../store.ts'
import { exampleOf } from './example.ts'
import { RuleLink, rulesOfHook } from './hook-list.tsx'
import { groupHooks, pathOfHook, type Hook, type WebhookTrigger } from './hooks.ts'
import { recipesOf, authenticationText, type Recipe } from './authentication.ts'
import { RequestList } from './request-list.tsx'
import { RequestView } from './request-view.tsx'
import { SendForm, type Signer } from './send-form.tsx'
import { ShellLines } from './shell-lines.tsx'
import { useRules, type HookRule } from './use-rules.ts'
import { writeJson } from '../../json.ts'

const MAX_RULES_SHOWN = 20

export function HookPage({
  name,
  hooks,
  onReload,
  requestId,
}: {
  name: string
  /** All of them; undefined before they are known, or where they may not be listed. */
  hooks: readonly Hook[] | undefined
  onReload: () => void
  requestId: string | null
}): JSX.Element {
  const listed = hooks?.find((hook) => hook.name === name)
  const isListed = listed !== undefined
  // The permission to view a webhook does not include the list, and a new one is not in the list yet.
  const single = useLoaded(
    async (signal) => (isListed ? undefined : groupHooks([await get<WebhookTrigger>(pathOfHook(name), {}, signal)])[0]),
    [name, isListed],
    ['trigger', 'rule'],
  )
  const hook = listed ?? single.data
  const isNew = hook !== undefined && hooks !== undefined && !isListed
  useEffect(() => {
    if (isNew) onReload()
  }, [isNew])
  if (hook !== undefined) return <Loaded hook={hook} requestId={requestId} />
  return (
    <div class="page webhooks">
      <a href={hrefOf(['webhooks'])}>← All webhooks</a>
      {single.error instanceof ApiError && single.error.status === 404 ? (
        <>
          <h1>Webhook not found</h1>
          <p>
            No rule uses <code>{name.slice(0, 1000)}</code>. A webhook exists as long as a rule uses it. See its earlier
            requests under <a href={hrefOf(['triggers'])}>trigger instances</a>.
          </p>
        </>
      ) : single.error !== undefined ? (
        <Failure error={single.error} onRetry={single.reload} />
      ) : (
        <p class="loading">Loading…</p>
      )}
    </div>
  )
}

function Loaded({ hook, requestId }: { hook: Hook; requestId: string | null }): JSX.Element {
  const { name, triggers } = hook
  const { user } = useStore(session.state)
  const hasLogin = user?.method !== undefined
  const rules = useRules()
  const refs = triggers.map(({ ref }) => ref)
  useEffect(() => rules.need(refs), [hook])
  const listening = rulesOfHook(hook, rules)
  const address = addressOf(`api/v1/${pathOfHook(name)}`).href
  const [openedAt] = useState(() => new Date(serverNow()))
  const example = useMemo(() => exampleOf(listening ?? [], openedAt), [listening?.length])
  const recipes = recipesOfHook(hook, { address, hasLogin, ...example })
  const [sent, setSent] = useState(0)
  const onSent = (): void => setSent((n) => n + 1)

  return (
    <div class={`page fill webhooks webhook ${requestId === null ? '' : 'has-request'}`}>
      <div class="page-head">
        <a href={hrefOf(['webhooks'])}>← All webhooks</a>
        <h1>{name}</h1>
      </div>
      <dl class="facts webhook-facts">
        <dt>Address</dt>
        <dd>
          <code>{address}</code> <CopyButton text={address} title="Copy address" />
        </dd>
        <dt>Authentication</dt>
        <dd>
          {[...new Set(triggers.map(({ parameters }) => authenticationText(parameters.signature, hasLogin)))].map(
            (text) => (
              <p key={text}>{text}</p>
            ),
          )}
        </dd>
        <dt>Rules</dt>
        <dd>
          {rules.error !== undefined ? (
            <span class="hint">Could not load the rules: {messageOf(rules.error)}</span>
          ) : (
            <Rules rules={listening} />
          )}
        </dd>
      </dl>
      <div class="webhook-parts">
        <RequestList key={refs.join()} triggers={triggers} openId={requestId} sent={sent} />
        <div class="webhook-side">
          {requestId === null ? (
            <>
              <ShellLines recipes={recipes} />
              {/* What somebody types in stays when the rules have come. */}
              <SendForm path={pathOfHook(name)} example={example} signers={signersOf(hook)} onSent={onSent} />
            </>
          ) : (
            <RequestView key={requestId} id={requestId} onSent={onSent} />
          )}
        </div>
      </div>
    </div>
  )
}

function Rules({ rules }: { rules: readonly HookRule[] | undefined }): JSX.Element {
  if (rules === undefined) return <span class="hint">…</span>
  if (rules.length === 0) return <span class="hint">none that you may see</span>
  return (
    <span class="hook-rules">
      {rules.slice(0, MAX_RULES_SHOWN).map((rule) => (
        <RuleLink key={rule.id} rule={rule} />
      ))}
      {rules.length > MAX_RULES_SHOWN && <span class="hint">and {rules.length - MAX_RULES_SHOWN} more</span>}
    </span>
  )
}

/** Triggers of one address may ask for different proofs. */
function recipesOfHook({ triggers }: Hook, sample: Parameters<typeof recipesOf>[1]): Recipe[] {
  const recipes = triggers.flatMap(({ parameters }) => recipesOf(parameters.signature, sample))
  return [...new Map(recipes.map((recipe) => [recipe.text, recipe])).values()]
}

function signersOf({ triggers }: Hook): Signer[] {
  const signers = triggers.map(({ parameters: { signature } }): [string, Signer] => [
    // The sender enters the secret.
    writeJson({ ...signature, secret: undefined }),
    { signature },
  ])
  return [...new Map(signers).values()]
}
