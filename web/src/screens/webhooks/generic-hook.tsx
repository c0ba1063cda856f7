/** The webhook `svc`: programs announce events of a kind that somebody has defined. */
import type { JSX } from 'preact'
import { useId, useMemo } from 'preact/hooks'
import { addressOf, list } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { TriggerTypeRecord } from '../../api/records.ts'
import { session } from '../../api/session.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Failure } from '../../components/failure.tsx'
import { hrefOf, setQuery, useLocation } from '../../router.ts'
import { useStore } from '../../store.ts'
import { GENERIC_HOOK, pathOfHook } from './hooks.ts'
import { recipesOf, authenticationText } from './authentication.ts'
import { exampleOfSchema } from './schema-example.ts'
import { SendForm } from './send-form.tsx'
import { ShellLines } from './shell-lines.tsx'

type Type = Pick<TriggerTypeRecord, 'ref' | 'payload_schema' | 'parameters_schema'>

/** More than anybody chooses from. */
const MAX_TYPES = 100
const unsigned = [{ signature: undefined }]

export function GenericHook(): JSX.Element {
  const { user } = useStore(session.state)
  const hasLogin = user?.method !== undefined
  const { query } = useLocation()
  const chosen = query.get('trigger') ?? ''
  const id = useId()
  const types = useLoaded(
    async (signal) => {
      const attributes = ['payload_schema', 'parameters_schema']
      const found = await list<Type>('triggertypes', { limit: MAX_TYPES, include_attributes: attributes }, signal)
      // Those with parameters have many triggers; and those of the server happen by themselves.
      return found.items.filter(
        ({ ref, parameters_schema: parameters }) => Object.keys(parameters).length === 0 && !ref.startsWith('core.'),
      )
    },
    [],
    ['trigger_type'],
  )
  const type = types.data?.find(({ ref }) => ref === chosen)
  const example = useMemo(
    () => ({
      body: {
        trigger: chosen === '' ? 'my_pack.my_event' : chosen,
        payload: exampleOfSchema({ type: 'object', ...type?.payload_schema }),
      },
      headers: [],
    }),
    [chosen, type],
  )
  const address = addressOf(`api/v1/${pathOfHook(GENERIC_HOOK)}`).href
  return (
    <div class="page webhooks">
      <div class="page-head">
        <a href={hrefOf(['webhooks'])}>← All webhooks</a>
        <h1>Generic webhook</h1>
      </div>
      <p>
        The webhook <code>{GENERIC_HOOK}</code> always exists. Programs send the name of a trigger type and a payload.
        Rules of that type read the payload as <code>trigger.&lt;key&gt;</code>. Create the{' '}
        <a href={hrefOf(['triggers'])}>trigger type</a>first. Its schema defines the valid payloads.
      </p>
      <dl class="facts webhook-facts">
        <dt>Address</dt>
        <dd>
          <code>{address}</code> <CopyButton text={address} title="Copy address" />
        </dd>
        <dt>Authentication</dt>
        <dd>{authenticationText(undefined, hasLogin)}</dd>
        <dt>
          <label for={id}>Trigger type</label>
        </dt>
        <dd>
          {types.error !== undefined ? (
            <Failure error={types.error} onRetry={types.reload} />
          ) : (
            <select
              id={id}
              value={type === undefined ? '' : chosen}
              onChange={(event) => setQuery({ trigger: event.currentTarget.value }, { replace: true })}
            >
              <option value="">{types.data?.length === 0 ? 'No trigger types' : 'Choose one for the example'}</option>
              {types.data?.map(({ ref }) => (
                <option key={ref} value={ref}>
                  {ref}
                </option>
              ))}
            </select>
          )}
        </dd>
      </dl>
      <div class="webhook-two">
        <ShellLines recipes={recipesOf(undefined, { address, hasLogin, ...example })} />
        <SendForm key={chosen} path={pathOfHook(GENERIC_HOOK)} example={example} signers={unsigned} />
      </div>
    </div>
  )
}
