/** Webhooks: how to send to each, its requests and their outcomes. */
import type { JSX } from 'preact'
import { list } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import { Failure } from '../../components/failure.tsx'
import type { ScreenProps } from '../../router.ts'
import { GenericHook } from './generic-hook.tsx'
import { HookList } from './hook-list.tsx'
import { HookPage } from './hook-page.tsx'
import { GENERIC_HOOK, groupHooks, type WebhookTrigger } from './hooks.ts'
import './webhooks.css'

export default function Webhooks({ path, query }: ScreenProps): JSX.Element {
  const { data, error, reload } = useLoaded(
    async (signal) => groupHooks((await list<WebhookTrigger>('webhooks', {}, signal)).items),
    [],
    ['trigger', 'rule'],
  )
  // A name that somebody has typed into the address may have its slashes as they are.
  const name = path.join('/')
  if (name === GENERIC_HOOK) return <GenericHook />
  if (name !== '')
    return <HookPage key={name} name={name} hooks={data} onReload={reload} requestId={query.get('request')} />
  if (error !== undefined && data === undefined) return <Failure error={error} onRetry={reload} />
  if (data === undefined) return <p class="loading">Loading…</p>
  return <HookList hooks={data} search={query.get('search') ?? ''} />
}
