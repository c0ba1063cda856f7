/** A server with something to look at: a little of everything that the web client shows. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

export interface Demo {
  /** Ids of executions. */
  readonly succeeded: string
  readonly failed: string
  /** Until it is cancelled, or the server stops. */
  readonly running: string
  /** Started by a rule. */
  readonly deployed: string
  /** Trigger instance that a rule matched, and one that none did. */
  readonly matched: string
  readonly unmatched: string
  readonly traceId: string
}

const deployScript = `echo "Deploying $1 to $2"
for step in build test package upload; do
  printf '\\033[36m[%s]\\033[0m running\\n' "$step"
done
printf '\\033[33mwarning:\\033[0m the cache was cold\\n' >&2
printf '\\033[1;32mdone\\033[0m in 3 steps\\n'
`

const checkScript = `for i in $(seq 1 400); do
  node="node-$((i % 12))"
  printf '\\033[36m%s\\033[0m of 12 checked: \\033[32mok\\033[0m\\n' "$node"
  [ $((i % 4)) -eq 0 ] && printf '\\033[1;33mwarning:\\033[0m %s answers slowly\\n' "$node" >&2
  sleep 0.5
done
`

const pack: Record<string, string> = {
  'pack.yaml': '{name: shop, description: Everything the shop runs on., version: 1.2.0, author: Shop}\n',
  'actions/deploy.sh': deployScript,
  'actions/deploy.yaml': `name: deploy
description: Builds a branch and brings it to the servers of an environment.
runner_type: local-shell-script
entry_point: deploy.sh
parameters:
  branch: {type: string, required: true, position: 0, description: 'Branch, tag or commit.'}
  environment: {type: string, enum: [staging, production], default: staging, position: 1}
  token: {type: string, secret: true, description: Of the registry.}
  dry_run: {type: boolean, default: false, description: Show what would be done.}
`,
  'actions/check.sh': checkScript,
  'actions/check.yaml': `name: check
description: Looks after every node, again and again.
runner_type: local-shell-script
entry_point: check.sh
parameters:
  timeout: {default: 600}
`,
  'actions/report.yaml': `name: report
description: Says how a deployment has ended.
runner_type: local-shell-cmd
parameters:
  text: {type: string, required: true}
  cmd: {default: 'echo "$TEXT"', immutable: true}
  env: {default: {TEXT: '{{ text }}'}, immutable: true}
`,
  'rules/on_push.yaml': `name: on_push
description: Deploys what is pushed to main.
enabled: true
trigger: {type: core.svc.webhook, parameters: {url: push}}
criteria:
  trigger.body.branch: {type: equals, pattern: main}
action:
  ref: shop.deploy
  parameters: {branch: '{{ trigger.body.branch }}', environment: staging}
`,
  'rules/on_deployed.yaml': `name: on_deployed
description: Reports finished deployments.
enabled: true
trigger: {type: core.svc.generic.actiontrigger}
criteria:
  trigger.action_ref: {type: equals, pattern: shop.deploy}
action:
  ref: shop.report
  parameters: {text: 'The deployment has {{ trigger.status }}.'}
`,
  'rules/nightly.yaml': `name: nightly
description: A deployment to staging every night.
enabled: false
trigger: {type: core.svc.CronTimer, parameters: {hour: 3, minute: 0}}
action:
  ref: shop.deploy
  parameters: {branch: main}
`,
}

/** @param headers of a caller who may do all this, where authentication is on */
export async function fillServer(server: TestApp, headers: Record<string, string> = {}): Promise<Demo> {
  const folder = join(server.basePath, 'packs', 'shop')
  for (const [name, text] of Object.entries(pack)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text, { mode: 0o755 })
  }
  const registered = await server.call('POST', '/v1/packs/register', { packs: ['shop'] }, headers)
  if (registered.status !== 200) throw new Error(`the pack was not registered: ${registered.text}`)

  const start = async (action: string, parameters: Record<string, unknown>): Promise<string> => {
    const { status, body, text } = await server.call<{ id: string }>(
      'POST',
      '/v1/executions',
      { action, parameters },
      headers,
    )
    if (status !== 201) throw new Error(`not accepted: ${text}`)
    return body.id
  }
  const statusOf = async (id: string): Promise<string> =>
    (await server.call<{ status: string }>('GET', `/v1/executions/${id}`, undefined, headers)).body.status
  const reached = (id: string, wanted: string): Promise<boolean> =>
    waitFor(`execution ${id} to be ${wanted}`, async () => (await statusOf(id)) === wanted)

  const succeeded = await start('shop.deploy', { branch: 'feature/cart', token: 'registry-token' })
  await reached(succeeded, 'succeeded')
  const failed = await start('core.local', {
    cmd: 'echo "checking disks"; echo "/dev/sdb: no such device" >&2; exit 3',
  })
  await reached(failed, 'failed')
  const timedOut = await start('core.local', { cmd: 'sleep 30', timeout: 1 })
  const canceled = await start('core.local', { cmd: 'sleep 300' })
  await reached(canceled, 'running')
  await server.call('DELETE', `/v1/executions/${canceled}`, undefined, headers)
  await reached(timedOut, 'timeout')

  const push = async (branch: string): Promise<{ instance: string; trace: string }> => {
    const answer = await server.call('POST', '/v1/webhooks/push', { branch, commits: 2 }, headers)
    if (answer.status !== 202) throw new Error(`not accepted: ${answer.text}`)
    const [instance = ''] = (answer.headers.get('svc-trigger-instance-id') ?? '').split(',')
    return { instance, trace: answer.headers.get('svc-trace-id') ?? '' }
  }
  const matched = await push('main')
  const unmatched = await push('feature/cart')
  const deployed = await waitFor('what the rules have started', async () => {
    const { body } = await server.call<{ action_executions: { object_id: string; ref: string }[] }>(
      'GET',
      `/v1/traces/${matched.trace}`,
      undefined,
      headers,
    )
    const reported = body.action_executions.find(({ ref }) => ref === 'shop.report')
    const found = body.action_executions.find(({ ref }) => ref === 'shop.deploy')
    return reported !== undefined && (await statusOf(reported.object_id)) === 'succeeded' && found?.object_id
  })
  const running = await start('shop.check', {})
  await reached(running, 'running')
  return {
    succeeded,
    failed,
    running,
    deployed,
    matched: matched.instance,
    unmatched: unmatched.instance,
    traceId: matched.trace,
  }
}
