/** docs/recipes/senders.md: every rule of the page, and its sender as its documentation says that it sends. */
import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { send, type RawAnswer } from '../conformance/support.ts'
import { createTestApp } from '../helpers/app.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { rulesOf } from './support.ts'

const PAGE = 'senders.md'
const SECRET = 'a secret of 28 characters !!'
const COMMIT = '5f2a4c1de9b07836a1b2c3d4e5f60718293a4b5c'

type Body = Record<string, unknown>
type Headers = Record<string, string>

interface Sender {
  name: string
  /** The file of its rule on the page. */
  rule: string
  /** Its webhook, which is also the name of its API key's scope. */
  url: string
  body: Body
  /** Besides Content-Type; `sign` adds the signature. */
  headers: Headers
  type?: string
  /** Undefined: it has an API key. */
  sign?: (body: string, secret: string) => Headers
  /** What the action prints. */
  prints: string
  /** Of an event that concerns nobody: what is different. */
  other: (body: Body) => Body
}

const hex = (secret: string, text: string): string => createHmac('sha256', secret).update(text).digest('hex')
const now = (): string => String(Math.floor(Date.now() / 1000))

const senders: Sender[] = [
  {
    name: 'GitHub',
    rule: 'github.yaml',
    url: 'github',
    headers: { 'User-Agent': 'GitHub-Hookshot/1a2b3c4', 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'd-1' },
    sign: (body, secret) => ({ 'X-Hub-Signature-256': `sha256=${hex(secret, body)}` }),
    body: {
      ref: 'refs/heads/main',
      before: '0'.repeat(40),
      after: COMMIT,
      repository: { id: 7, name: 'api', full_name: 'shop/api', default_branch: 'main' },
      pusher: { name: 'dev', email: 'dev@example.com' },
      commits: [{ id: COMMIT, message: 'Sell more', added: [], removed: [], modified: ['main.go'] }],
    },
    prints: `deploy shop/api at ${COMMIT}`,
    other: (body) => ({ ...body, ref: 'refs/heads/$(touch /tmp/never)' }),
  },
  {
    name: 'GitLab',
    rule: 'gitlab.yaml',
    url: 'gitlab',
    headers: { 'X-Gitlab-Event': 'Push Hook', 'X-Gitlab-Event-UUID': 'e-1', 'Idempotency-Key': 'k-1' },
    sign: (_body, secret) => ({ 'X-Gitlab-Token': secret }),
    body: {
      object_kind: 'push',
      event_name: 'push',
      ref: 'refs/heads/main',
      checkout_sha: COMMIT,
      user_username: 'dev',
      project: { id: 15, name: 'api', path_with_namespace: 'shop/api', default_branch: 'main' },
      total_commits_count: 1,
    },
    prints: `deploy shop/api at ${COMMIT}`,
    other: (body) => ({ ...body, ref: 'refs/heads/next' }),
  },
  {
    name: 'Gitea',
    rule: 'gitea.yaml',
    url: 'gitea',
    headers: { 'X-Gitea-Event': 'release', 'X-Gitea-Delivery': 'g-1', 'X-GitHub-Event': 'release' },
    sign: (body, secret) => ({
      'X-Gitea-Signature': hex(secret, body),
      'X-Hub-Signature-256': `sha256=${hex(secret, body)}`,
    }),
    body: {
      action: 'published',
      release: { id: 3, tag_name: 'v1.4.0', target_commitish: 'main', draft: false, prerelease: false },
      repository: { id: 9, full_name: 'shop/web' },
      sender: { login: 'dev' },
    },
    prints: 'release v1.4.0 of shop/web',
    other: (body) => ({ ...body, action: 'updated' }),
  },
  {
    name: 'Alertmanager',
    rule: 'alertmanager.yaml',
    url: 'alertmanager',
    headers: { 'User-Agent': 'Alertmanager/0.27.0' },
    body: {
      version: '4',
      groupKey: '{}:{alertname="ServiceDown"}',
      truncatedAlerts: 0,
      status: 'firing',
      receiver: 'svc',
      groupLabels: { alertname: 'ServiceDown' },
      commonLabels: { alertname: 'ServiceDown', service: 'shop' },
      commonAnnotations: {},
      externalURL: 'http://alertmanager:9093',
      alerts: ['web1', 'web2'].map((instance) => ({
        status: 'firing',
        labels: { alertname: 'ServiceDown', service: 'shop', instance },
        annotations: {},
        startsAt: '2026-11-29T01:00:00.000Z',
        endsAt: '0001-01-01T00:00:00Z',
        generatorURL: 'http://prometheus:9090/graph',
        fingerprint: 'c0ffee',
      })),
    },
    prints: 'restart shop on web1\nrestart shop on web2',
    other: (body) => ({ ...body, status: 'resolved' }),
  },
  {
    name: 'Grafana',
    rule: 'grafana.yaml',
    url: 'grafana',
    headers: { 'User-Agent': 'Grafana' },
    sign(body, secret) {
      const time = now()
      return {
        'X-Grafana-Alerting-Timestamp': time,
        'X-Grafana-Alerting-Signature': hex(secret, `${time}:${body}`),
      }
    },
    body: {
      receiver: 'svc',
      status: 'firing',
      orgId: 1,
      alerts: [
        {
          status: 'firing',
          labels: { alertname: 'High latency' },
          annotations: {},
          startsAt: '2026-11-29T01:00:00Z',
          values: { B: 3.5 },
          panelURL: 'https://grafana.example.com/d/abc?viewPanel=4',
        },
      ],
      groupLabels: {},
      commonLabels: { alertname: 'High latency' },
      commonAnnotations: {},
      externalURL: 'https://grafana.example.com/',
      version: '1',
      groupKey: '{}:{}',
      truncatedAlerts: 0,
      title: '[FIRING:1] High latency',
      state: 'alerting',
      message: '',
    },
    prints: 'High latency (https://grafana.example.com/d/abc?viewPanel=4)',
    other: (body) => ({ ...body, status: 'resolved', state: 'ok' }),
  },
  {
    name: 'PagerDuty',
    rule: 'pagerduty.yaml',
    url: 'pagerduty',
    headers: { 'User-Agent': 'PagerDuty-Webhook/V3.0', 'X-Webhook-Id': 'w-1', 'X-Webhook-Subscription': 'PSUB' },
    // One of the secret before, one of the new one.
    sign: (body, secret) => ({ 'X-PagerDuty-Signature': `v1=${hex('the one before', body)},v1=${hex(secret, body)}` }),
    body: {
      event: {
        id: '01EVENT',
        event_type: 'incident.triggered',
        resource_type: 'incident',
        occurred_at: '2026-11-29T01:00:00.000Z',
        agent: null,
        client: null,
        data: {
          id: 'PINC',
          type: 'incident',
          number: 4711,
          status: 'triggered',
          title: 'Checkout is slow',
          urgency: 'high',
          service: { id: 'PSVC', type: 'service_reference', summary: 'Checkout' },
        },
      },
    },
    prints: 'diagnose Checkout for incident 4711',
    other: (body) => ({ event: { ...(body['event'] as Body), event_type: 'incident.resolved' } }),
  },
  {
    name: 'Docker registry',
    rule: 'registry.yaml',
    url: 'registry',
    headers: { 'User-Agent': 'Go-http-client/1.1' },
    type: 'application/vnd.docker.distribution.events.v2+json',
    body: {
      events: [
        registryEvent('pull', { repository: 'shop/api', tag: 'v1' }),
        registryEvent('push', { repository: 'shop/api' }),
        registryEvent('push', { repository: 'shop/api', tag: 'v2' }),
        registryEvent('push', { repository: 'shop/web', tag: 'v7' }),
      ],
    },
    prints: 'deploy shop/api:v2\ndeploy shop/web:v7',
    other: () => ({ events: [registryEvent('pull', { repository: 'shop/api', tag: 'v2' })] }),
  },
  {
    name: 'Stripe',
    rule: 'stripe.yaml',
    url: 'stripe',
    headers: { 'User-Agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)' },
    sign(body, secret) {
      const time = now()
      return { 'Stripe-Signature': `t=${time},v1=${hex(secret, `${time}.${body}`)},v0=${'0'.repeat(64)}` }
    },
    body: {
      id: 'evt_1',
      object: 'event',
      api_version: '2026-01-01',
      created: 1_795_900_000,
      type: 'invoice.payment_failed',
      livemode: true,
      pending_webhooks: 1,
      data: {
        object: {
          id: 'in_1',
          object: 'invoice',
          customer_email: 'buyer@example.com',
          amount_due: 1999,
          currency: 'eur',
        },
      },
    },
    prints: 'remind buyer@example.com of 1999 eur cents',
    other: (body) => ({ ...body, id: 'evt_2', livemode: false }),
  },
]

function registryEvent(action: string, target: Body): Body {
  return {
    id: `event of ${JSON.stringify(target)}`,
    timestamp: '2026-11-29T01:00:00.000Z',
    action,
    target: { mediaType: 'application/vnd.oci.image.manifest.v1+json', size: 700, digest: 'sha256:0', ...target },
    request: { id: 'r', addr: '192.0.2.7:4000', host: 'registry.example.com', method: 'PUT', useragent: 'docker' },
    actor: {},
    source: { addr: 'registry:5000', instanceID: 'i' },
  }
}

const rules = rulesOf(PAGE)

let server: TestApp
let admin: Headers
const keys = new Map<string, string>()

beforeAll(async () => {
  server = await createTestApp({ settings: { 'auth.enable': 'True', 'auth.failures_per_address': '0' } })
  admin = await signIn(server, 'admin', firstPassword(server.basePath))
  const make = async (method: string, path: string, body: Body): Promise<Body> => {
    const answer = await server.call(method, path, body, admin)
    if (answer.status >= 300) throw new Error(answer.text)
    return answer.body
  }
  for (const { url, rule, sign } of variants(senders)) {
    if (sign !== undefined) {
      const name = `${url}_secret`
      await make('PUT', `/v1/keys/${name}`, { name, value: SECRET, secret: true })
    }
    const scopes = [{ resource_uid: `webhook:${url}`, permission_types: ['webhook_send'] }]
    const { key } = await make('POST', '/v1/apikeys', { scopes })
    keys.set(url, String(key))
    await make('POST', '/v1/rules', rules.get(rule) ?? {})
  }
})
afterAll(() => server.stop())

interface Delivery {
  body?: Body
  headers?: Headers
  secret?: string
  key?: string | undefined
}

function deliver(sender: Sender, given: Delivery = {}): Promise<RawAnswer> {
  const body = JSON.stringify(given.body ?? sender.body)
  const credential =
    sender.sign === undefined
      ? { Authorization: `Bearer ${given.key ?? keys.get(sender.url) ?? ''}` }
      : sender.sign(body, given.secret ?? SECRET)
  const headers = {
    'Content-Type': sender.type ?? 'application/json',
    ...sender.headers,
    ...credential,
    ...given.headers,
  }
  return send(server.urls.api, { method: 'POST', path: `/api/v1/webhooks/${sender.url}`, headers, body })
}

/** Executions that a delivery has started, once its rules have been evaluated. */
async function startedBy(answer: RawAnswer): Promise<ExecutionAnswer[]> {
  expect(answer.status).toBe(202)
  const id = String(answer.headers['svc-trigger-instance-id'])
  await waitFor('the rules', async () => {
    const { body } = await server.call<{ status: string }>('GET', `/v1/triggerinstances/${id}`, undefined, admin)
    return body.status === 'processed'
  })
  const path = `/v1/executions?trigger_instance=${id}`
  return (await server.call<ExecutionAnswer[]>('GET', path, undefined, admin)).body
}

/** A server whose calls are those of the administrator. */
const asAdmin = (): TestApp => ({
  ...server,
  call: (method, path, body, headers) => server.call(method, path, body, { ...admin, ...headers }),
})

describe.each(variants(senders))('$name', (sender) => {
  it('runs the action with the values of the event', async () => {
    const [execution, ...others] = await startedBy(await deliver(sender))
    expect(others).toEqual([])
    const { status, result } = await waitForStatus(asAdmin(), execution?.id ?? '')
    expect([status, result['stdout']]).toEqual(['succeeded', sender.prints])
  })

  it('an event that concerns nobody starts nothing', async () => {
    const renamed = Object.fromEntries(
      Object.entries(sender.headers).map(([name, value]) => [name, value.replace(/-1$/, '-2')]),
    )
    expect(await startedBy(await deliver(sender, { body: sender.other(sender.body), headers: renamed }))).toEqual([])
  })

  it('somebody without the secret is refused', async () => {
    const wrong: Delivery = sender.sign === undefined ? { key: 'x'.repeat(60) } : { secret: 'not the secret' }
    expect((await deliver(sender, wrong)).status).toBe(401)
  })
})

fullOnly(it)('a key of one sender does not open the webhook of another', async () => {
  const [alertmanager] = senders.filter(({ url }) => url === 'alertmanager')
  if (alertmanager === undefined) throw new Error('there is no such sender')
  expect((await deliver(alertmanager, { key: keys.get('registry') })).status).toBe(403)
})

it('every rule of the page has a sender here', () => {
  expect([...rules.keys()].toSorted()).toEqual(senders.map(({ rule }) => rule).toSorted())
})
