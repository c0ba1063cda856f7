/** `svc webhook`: lists, shows and calls webhooks (contract 09, 9.3; contract 06). */
import { CliCommand } from '../command.ts'
import { attributeOf } from '../output/print.ts'
import { createGetCommand, createListCommand, type CliResource, type ListFlags } from '../resources.ts'
import { ruleColumn } from '../rule-column.ts'
import type { CommandContext } from '../session.ts'
import { createWebhookSendCommand } from './webhook-send.ts'

const webhook: CliResource = {
  name: 'Webhook',
  pluralName: 'Webhooks',
  path: '/webhooks',
  columns: ['url', 'rule', 'scheme', 'description'],
  order: ['url', 'type', 'description', 'rules'],
  extend: (record) => ({ ...record, url: attributeOf(record, 'parameters.url') }),
  addColumns: (record) => ({
    ...ruleColumn(record),
    // Without one, senders need a credential.
    scheme: attributeOf(record, 'parameters.signature.scheme') ?? 'none',
  }),
}

export function createWebhookCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, webhook, ({ pack }: ListFlags & { pack?: string }) => ({ pack }))
    .description('List the webhooks of rules.')
    .option('-p, --pack <pack>', 'only items of this pack')
    .examples('svc webhook list -p examples')

  const get = createGetCommand(context, webhook, '<url...>', 'webhook names: the part after /v1/webhooks/')
    .description('Show webhooks.')
    .examples('svc webhook get github/push')

  return new CliCommand('webhook').addCommand(list).addCommand(get).addCommand(createWebhookSendCommand(context))
}
