/** Decides which triggers of a hook a request can dispatch, by its signature or credential. */
import { isAppError, webhookNotRegistered, type AppError } from '../../core/errors.ts'
import { type ApiRequest, type RawRequest } from '../../http/index.ts'
import { type Log, createRepeatLimit } from '../../lib/log/index.ts'
import { nowMicros } from '../../core/time.ts'
import type { AdmittedDelivery } from './deliveries.ts'
import type { SentHeaders } from './headers.ts'
import type { Hook } from './registry.ts'
import { webhookResource } from '../../core/permissions.ts'

/** @throws SIGNATURE_…, CREDENTIALS_MISSING, PERMISSION_DENIED if the request can dispatch no trigger */
export type AdmitDelivery = (
  hook: Hook,
  request: ApiRequest,
  raw: RawRequest,
  headers: SentHeaders,
) => Promise<AdmittedDelivery[]>

/** Which of several errors is answered: first one after which the sender sends again, last that there is no signature. */
function weightOf({ code, kind }: AppError): number {
  return kind === 'unavailable' ? 2 : code === 'SIGNATURE_MISSING' ? 0 : 1
}

export function createDeliveryAdmission({ log }: { log: Log }): AdmitDelivery {
  const repeats = createRepeatLimit(10, () => performance.now())

  async function admit(
    hook: Hook,
    { rights, ...request }: ApiRequest,
    raw: RawRequest,
    headers: SentHeaders,
  ): Promise<AdmittedDelivery[]> {
    const admitted: AdmittedDelivery[] = []
    let refusal: AppError | undefined
    let maySend: boolean | undefined
    for (const trigger of hook.triggers) {
      if (trigger.verifier === undefined) {
        maySend ??= rights.may('webhook_send', webhookResource(hook.name))
        if (maySend) admitted.push({ trigger, proof: undefined })
        continue
      }
      try {
        const proof = await trigger.verifier.verify({ headers, body: raw.bytes }, nowMicros() / 1_000_000)
        admitted.push({ trigger, proof })
      } catch (error) {
        if (!isAppError(error)) throw error
        if (refusal === undefined || weightOf(error) > weightOf(refusal)) refusal = error
      }
    }
    if (admitted.length > 0) return admitted
    if (refusal === undefined) {
      rights.require('webhook_send', webhookResource(hook.name))
      throw webhookNotRegistered(hook.name)
    }
    noteRefusal(hook, refusal, request)
    throw refusal
  }

  function noteRefusal(hook: Hook, { code, message }: AppError, request: Omit<ApiRequest, 'rights'>): void {
    const { remoteAddress, requestId } = request
    const kept = repeats(`${hook.name} ${code} ${remoteAddress}`)
    if (kept === undefined) return
    log.audit('webhook.refused', message, {
      webhook: hook.name,
      code,
      remote_address: remoteAddress,
      request_id: requestId,
      ...(kept === 0 ? {} : { lines_kept_back: kept }),
    })
  }

  return admit
}
