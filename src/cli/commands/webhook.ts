/** `svc webhook`: which addresses rules listen on, and sending to them (contract 09, 9.3; contract 06). */
import { CliCommand } from '../command.ts'
import { attributeOf } from '../output/print.ts'
import { createGetCommand, createListCommand, type Resource } from '../resources.ts'
import type { CommandContext } from '../session.ts'
import { createWebhookSendCommand } from './webhook-send.ts'

const columns = ['url', 'type', 'description']

const webhook: Resource = {
  name: 'Webhook',
  pluralName: 'Webhooks',
  path: '/webhooks',
  columns,
  order: columns,
  extend: (record) => ({ ...record, url: attributeOf(record, 'parameters.url') }),
}

export function createWebhookCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, webhook)
    .description('List the webhooks that rules have made.')
    .examples('svc webhook list')

  const get = createGetCommand(context, webhook, '<url...>', 'names, as they stand after /v1/webhooks/')
    .description('Show webhooks.')
    .examples('svc webhook get github/push')

  return new CliCommand('webhook').addCommand(list).addCommand(get).addCommand(createWebhookSendCommand(context))
}
