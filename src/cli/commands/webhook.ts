/** `svc webhook`: which addresses rules listen on (contract 09, 9.3; contract 06, 6.2). */
import { Command } from 'commander'
import { createCommand } from '../options.ts'
import { attributeOf } from '../print.ts'
import { createGetCommand, createListCommand, type Resource } from '../resources.ts'
import type { CommandContext } from '../session.ts'

const columns = ['url', 'type', 'description']

const webhook: Resource = {
  name: 'Webhook',
  pluralName: 'Webhooks',
  path: '/webhooks',
  columns,
  order: columns,
  extend: (record) => ({ ...record, url: attributeOf(record, 'parameters.url') }),
}

export function createWebhookCommand(context: CommandContext): Command {
  const list = createListCommand(context, webhook)
    .description('List the webhooks that rules have made.')
    .addHelpText('after', '\nExample:\n  svc webhook list')

  const get = createGetCommand(context, webhook, '<url...>', 'names, as they stand after /v1/webhooks/')
    .description('Show webhooks.')
    .addHelpText('after', '\nExample:\n  svc webhook get github/push')

  return createCommand(new Command('webhook'))
    .description('List and show webhooks. Each is made by the rules that name it.')
    .addCommand(list)
    .addCommand(get)
}
